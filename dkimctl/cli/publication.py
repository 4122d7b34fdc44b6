"""What `publish` and `register --publish` do: select, plan, ask, change DNS, and prove it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dkimctl.cli import next_steps, selected, terminal
from dkimctl.cli.checking import check_records, open_source, warn_of_urgent
from dkimctl.cli.options import ALLOW_SHADOWING, read_duration
from dkimctl.cli.output import LONG_TABLE, table_layout, write_chunks
from dkimctl.cli.progress import ProgressDisplay
from dkimctl.cli.report import Reporter, warn_alike
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import interrupting, stopping
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, OutputError, UsageError, worst
from dkimctl.formats.changes import render_changes
from dkimctl.formats.renderer import PublicationFormat
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DomainSpec, Registration, RegistrationKey, named
from dkimctl.names import Selection
from dkimctl.publishing.plan import CHANGING, Action, Change, Target, apply_plan, make_plan
from dkimctl.publishing.pools import assign_selectors
from dkimctl.publishing.targets import open_targets
from dkimctl.rotation.life import read_keys
from dkimctl.text import MAX_ALIKE, counted, few, printable, readable, without_names

# What the summary calls a change that is planned, and one that was made; "created" alone is a word
# of registering.
_WORDS = {
    Action.CREATE: ("to create", "created in DNS"),
    Action.REPLACE: ("to replace", "replaced in DNS"),
    Action.REMOVE: ("to remove", "removed from DNS"),
    Action.KEEP: ("already in DNS", ""),
    Action.BLOCKED: ("blocked", ""),
    Action.UNCOVERED: ("without a DNS target", ""),
    Action.UNREAD: ("not read", ""),
}


class PublishOptions(NamedTuple):
    """What is asked for."""

    words: Sequence[str] = ()  # the selection as it was typed
    fmt: PublicationFormat = PublicationFormat.TABLE
    output: Path | None = None
    dry_run: bool = False
    yes: bool = False
    replace: bool = False
    wait: str | None = None  # a duration as it was typed; None: DNS is not checked
    allow_shadowing: bool = False  # create records that end what a wildcard answers for others
    is_shown: bool = True  # on stdout; else warnings have what the table would

    def require_sound(self) -> None:
        """Raise UsageError for options that do not go together, or without a terminal to ask on."""
        if self.wait is not None:
            read_duration("--wait", self.wait)
        if self.dry_run and (self.yes or self.wait is not None):
            message = f"--dry-run cannot be combined with {'--yes' if self.yes else '--wait'}"
            raise UsageError(message, hint="remove one of them")
        if self.dry_run or self.yes:
            return
        if self.fmt is not PublicationFormat.TABLE:
            hint = "to see the plan, add --dry-run; to make the changes, --yes"
            raise UsageError(f"--format {self.fmt} needs --dry-run or --yes", hint=hint)
        if not terminal.is_interactive():
            hint = "add --yes to make them, or --dry-run to see them"
            raise UsageError("there is no terminal to ask whether to make the changes", hint=hint)


def open_dns_targets(session: Session) -> Sequence[Target]:
    """The targets of the profile. Raises UsageError if there is none, or one cannot be used."""
    if not session.has_dns_targets:
        profile, file = session.profile.name, session.config_file
        how = f"write `dns` into {file} (docs/publish.md shows how)"
        if session.config.dns:
            how = f"add {profile} to `profiles` of an entry of `dns` in {file}"
        hint = f"{how}, or publish by hand: {next_steps.publish(())}"
        raise UsageError(f"no DNS target is configured for the profile {profile}", hint=hint)
    return open_targets(session.config, session.profile.name, session.secrets)


def with_pool_selectors(
    session: Session, specs: Sequence[DomainSpec], ledger: Ledger
) -> list[tuple[DomainSpec, DkimctlError | None]]:
    targets = open_targets(session.config, session.profile.name, session.secrets)
    assigned = assign_selectors(specs, ledger, session.config.pool_of, targets, open_source)
    for error in (error for _, error in assigned if error is not None):
        error.hint = session.reporter.complete(error.hint)
    return assigned


def select_to_publish(
    session: Session, words: Sequence[str]
) -> tuple[Sequence[Registration], ExitCode]:
    """What is registered and selected, but for disabled keys and those past their grace period.

    The exit code is for what cannot be selected. Raises like `registered_results`.
    """
    selection = selected.read_selection(session, words)
    results = selected.registered_results(session, selection)
    sound = selected.Checkable(results, session.reporter, retired={}, left_out="not published")
    registrations = without_left_out(session, sound.registrations)
    return registrations, worst([sound.status, selected.warn_unmatched(session, selection)])


def without_left_out(session: Session, registrations: Iterable[Registration]) -> list[Registration]:
    """The registrations, but for disabled keys and those past their grace period, with a note."""
    retired = selected.retired_keys(session)
    kept: list[Registration] = []
    left_out: dict[str, list[str]] = {"past their grace period": [], "disabled": []}
    for registration in registrations:
        if registration.key in retired:
            left_out["past their grace period"].append(named(registration))
        elif not registration.signs:
            left_out["disabled"].append(named(registration))
        else:
            kept.append(registration)
    for why, names in left_out.items():
        if names:
            session.reporter.note(f"dkimctl: left out, {why}: {len(names)} ({few(names)})")
    return kept


def publish_records(
    session: Session, registrations: Sequence[Registration], targets: Sequence[Target],
    options: PublishOptions,
) -> ExitCode:  # fmt: skip
    """Show the plan, make the changes if that is wanted, and show what became of them."""
    reporter = session.reporter
    progress, count = ProgressDisplay(reporter), len(registrations)
    with unchanged_if_interrupted(), progress:
        plan = make_plan(
            registrations, targets, open_source,
            lambda: session.open_ledger(for_writing=False).ours(),
            progress=lambda done: progress.show(done, count, "read"),
            replace_foreign=options.replace, allow_shadowing=options.allow_shadowing,
        )  # fmt: skip
    total = sum(change.action in CHANGING for change in plan)
    is_table = options.fmt is PublicationFormat.TABLE
    written = _write(plan, options, reporter) if is_table or options.dry_run else ExitCode.OK
    if options.dry_run:
        reported = _report(plan, options, reporter)
        if total:
            flags = ["--replace"] if options.replace else []
            flags += [ALLOW_SHADOWING] if options.allow_shadowing else []
            command = next_steps.publish(options.words, *flags, by_target=True)
            reporter.note(f"dkimctl: nothing was changed; next: {command}")
        return worst([written, reported, ExitCode.NO if total else ExitCode.OK])
    if total and not options.yes:
        refusal = UsageError("there is no terminal to ask on", hint="add --yes")
        question = f"Make {counted(total, 'change')} in DNS?"
        if not terminal.confirms(question, refusal=refusal, hint="nothing was changed"):
            reporter.note("dkimctl: nothing was changed")
            return ExitCode.NO
    applied, is_stopped = _make_changes(session, plan, total)
    plan = [applied.get(change.key, change) for change in plan]
    made = sum(change.is_applied for change in plan)
    reported = _report(plan, options, reporter)
    status = ExitCode.OK
    try:
        if is_stopped and len(applied) < total:
            hint = f"to continue: `{next_steps.same_command()}`"
            raise Interrupted(f"interrupted: {made} of {counted(total, 'change')} made", hint=hint)
        done = [each.registration for each in plan if each.is_applied or each.action is Action.KEEP]
        wait = options.wait
        if wait is None:  # what was written where an alias leads must be at its own name as well
            behind = (each for each in plan if each.is_applied and each.alias_end)
            wait, done = "10s", [each.registration for each in behind]
        if done:
            status, checks = check_records(
                session, done, wait,
                is_shown=options.is_shown and is_table, selection=options.words,
            )  # fmt: skip
            plan = [change._replace(check=checks.get(change.key)) for change in plan]
    finally:
        if not is_table:  # also after Ctrl-C: what was changed
            written = _write(plan, options, reporter)
    _warn_of_undone(session, plan)
    if options.wait is None and made:
        check = f"check that all servers have them: {next_steps.wait_for(options.words)}"
        reporter.note(f"dkimctl: next, {check}")
    return worst([written, reported, status])


def _warn_of_undone(session: Session, plan: Sequence[Change]) -> None:
    """Warn about keys that are urgent, as far as is known, and that are still not in DNS."""
    left = {each.key for each in plan if not (each.is_applied or each.action is Action.KEEP)}
    if not left:
        return
    ledger, now = session.open_ledger(for_writing=False), datetime.now(UTC)
    names, domains = dict[Urgency, list[str]](), list[str]()
    for key in read_keys(ledger, Selection(), session.config.rotation, now):
        if key.key in left and key.urgency:
            names.setdefault(Urgency(key.urgency), []).append(named(key))
            domains.append(key.sign_domain)
    words = next_steps.select_domains(domains)
    hint = f"correct what is named above, then {next_steps.publish(words, by_target=True)}; "
    hint += f"or enter the records in a web panel: {next_steps.command('handoff', words)}"
    warn_of_urgent(session.reporter, names, words, hint)


@contextmanager
def unchanged_if_interrupted() -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM end the command, which has changed nothing yet."""
    with terminal.interruptible("nothing was changed; run the same command again"), interrupting():
        yield


def _make_changes(
    session: Session, plan: Sequence[Change], total: int
) -> tuple[dict[RegistrationKey, Change], bool]:
    """What became of each change, and whether the first Ctrl-C or SIGTERM has stopped more.

    Raises Interrupted at the second, which does not wait for the changes that were begun.
    """
    reporter, applied = session.reporter, dict[RegistrationKey, Change]()
    signals: list[None] = []
    is_announced = False
    progress = ProgressDisplay(reporter)

    def emit(change: Change) -> None:
        applied[change.key] = change
        progress.show(len(applied), total, "changed")

    def wait() -> None:
        nonlocal is_announced
        if signals and not is_announced:
            is_announced = True
            done = "stopping when the changes that were begun are done"
            reporter.note(f"dkimctl: {done}; Ctrl-C again ends at once")
        progress.show(len(applied), total, "changed")

    try:
        with stopping(lambda: signals.append(None)), progress:
            apply_plan(
                plan, emit, lambda: session.open_ledger(for_writing=True),
                lambda error: reporter.warn(f"not in `dkimctl history`: {error.message}"),
                is_stopped=lambda: bool(signals), wait=wait,
            )  # fmt: skip
    except KeyboardInterrupt:
        made = sum(change.is_applied for change in applied.values())
        text = f"interrupted: {made} of {counted(total, 'change')} made, perhaps more"
        hint = f"to continue: `{next_steps.same_command()}`"
        raise Interrupted(text, hint=hint) from None
    return applied, bool(signals)


def _write(plan: Sequence[Change], options: PublishOptions, reporter: Reporter) -> ExitCode:
    """Write the changes to stdout, or to the file; reports why it cannot."""
    if not options.is_shown:
        return ExitCode.OK
    fmt, output, shows_all = options.fmt, options.output, reporter.verbose
    is_long = output is None and sys.stdout.isatty() and len(plan) > LONG_TABLE
    is_cut = not shows_all and (fmt is PublicationFormat.MARKDOWN or is_long)
    layout = table_layout(reporter, output)._replace(
        only_attention=is_cut, shown_by="--verbose", most_alike=MAX_ALIKE if is_cut else None
    )
    chunks = render_changes(plan, fmt, layout, shows_kept=shows_all)
    try:
        write_chunks(chunks, output, is_paged=fmt is PublicationFormat.TABLE)
    except OutputError as error:
        reporter.error(error)
        return error.exit_code
    return ExitCode.OK


def _report(plan: Sequence[Change], options: PublishOptions, reporter: Reporter) -> ExitCode:
    """Report the totals, what failed, and what needs attention; returns the exit code."""
    counts = Counter[str]()
    for change in sorted(plan, key=lambda change: list(_WORDS).index(change.action)):
        has_failed = change.error is not None and change.action in CHANGING
        counts["failed in DNS" if has_failed else _WORDS[change.action][change.is_applied]] += 1
    parts = [f"{word} {count}" for word, count in counts.items()]
    reporter.summarize(", ".join(parts) or "nothing to do", counts)
    # One error for the names of a zone that failed alike.
    alike: dict[tuple[str, str, str], list[Change]] = {}
    for change in plan:
        if change.error is not None:
            kind = without_names(change.reason, *change.key)
            alike.setdefault((*change.place, kind), []).append(change)
    most = reporter.most_alike or len(alike)
    for (_, _, kind), (first, *more) in list(alike.items())[:most]:
        message, error = first.reason, first.error or DkimctlError("")
        if more:
            names = few([readable(change.fqdn) for change in (first, *more)])
            is_same = all(change.reason == message for change in more)
            message = f"{len(more) + 1} records ({names}): {message if is_same else kind}"
        elif first.fqdn not in message:
            message = f"{first.fqdn}: {message}"
        shown = DkimctlError(message, hint=error.hint)
        shown.code = error.code
        reporter.error(shown)
    if len(alike) > most:
        reporter.error(DkimctlError(f"and {len(alike) - most:,} more (--verbose lists all)"))
    if blocked := [change for change in plan if change.action is Action.BLOCKED]:
        _warn_blocked(blocked, options, reporter)
    if uncovered := [change for change in plan if change.action is Action.UNCOVERED]:
        domains = (change.registration.sign_domain for change in uncovered)
        by_hand = next_steps.publish(next_steps.select_domains(domains, options.words))
        hint = f"add the zone to `dns` in the config file, or change it by hand: {by_hand}"
        led = [change.registration.sign_domain for change in uncovered if change.alias_end]
        if led:  # that script fails at an alias
            sheet = next_steps.command("handoff", next_steps.select_domains(led, options.words))
            hint += f"; {sheet} has the records of aliases where they lead"
        text = f"in no zone of a DNS target: {_names(uncovered)}"
        reporter.warn(text, hint=hint, code=Action.UNCOVERED)
    codes = [change.error.exit_code for change in plan if change.error]
    return worst([*codes, ExitCode.NO if blocked or uncovered else ExitCode.OK])


def _warn_blocked(blocked: Sequence[Change], options: PublishOptions, reporter: Reporter) -> None:
    if not options.is_shown:  # no table gives the reasons
        warn_alike(reporter, (
            (f"{change.fqdn} is blocked: {change.full_reason}",
             f"blocked: {without_names(change.full_reason, *change.key)}", Action.BLOCKED)
            for change in blocked
        ))  # fmt: skip
    advice = []
    if any(change.before.alias for change in blocked):
        advice.append("change records where aliases lead, or remove the CNAME or DNAME")
    delegated = dict.fromkeys(printable(change.before.delegated) for change in blocked)
    if zones := [*filter(None, delegated)]:
        advice.append(f"for {few(zones)}, add a DNS target that has that zone")
    if any("--replace" in change.reason for change in blocked):
        replace = next_steps.publish(options.words, "--replace", by_target=True)
        advice.append(f"{replace} replaces TXT records of others")
    if any(change.add_first for change in blocked):
        allow = next_steps.publish(options.words, ALLOW_SHADOWING, by_target=True)
        advice.append(f"add the records that are named, or, if nobody needs them, run {allow}")
    text = f"blocked by what is in DNS: {_names(blocked)}"
    reporter.warn(text, hint="; ".join(advice), code=Action.BLOCKED)


def _names(changes: Sequence[Change]) -> str:
    return f"{len(changes)} ({few([named(change.registration) for change in changes])})"
