"""What `publish` and `register --publish` do: select, plan, ask, change DNS, and prove it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.cli import next_steps, terminal
from dkimctl.cli.checking import check_records
from dkimctl.cli.options import read_duration
from dkimctl.cli.output import table_layout, write_chunks
from dkimctl.cli.progress import PublicationProgress
from dkimctl.cli.report import AlikeWarnings, Reporter
from dkimctl.cli.results import LONG_TABLE
from dkimctl.cli.selected import (
    Checkable,
    read_selection,
    registered_results,
    retired_keys,
    warn_unmatched,
)
from dkimctl.cli.session import Session
from dkimctl.cli.terminal import interrupting, stopping
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, OutputError, UsageError, worst
from dkimctl.formats.changes import render_changes
from dkimctl.formats.renderer import PublicationFormat
from dkimctl.models import Registration, RegistrationKey, named
from dkimctl.publishing.plan import CHANGING, Action, Applied, PlanItem, items_of, with_outcome
from dkimctl.text import MAX_ALIKE, counted, few, printable, without_names

if TYPE_CHECKING:
    from dkimctl.publishing.plan import ConfiguredTarget, PublicationPlan

_ORDER = {step: number for number, step in enumerate(Action)}
# What the summary calls a change that is planned, and one that was made; "created" alone is a word
# of registering.
_WORDS = {
    Action.CREATE: ("to create", "created in DNS"),
    Action.REPLACE: ("to replace", "replaced in DNS"),
    Action.REMOVE: ("to remove", "removed from DNS"),
}
_OTHER_WORDS = {
    Action.KEEP: "already in DNS",
    Action.BLOCKED: "blocked",
    Action.UNCOVERED: "without a DNS target",
    Action.UNREAD: "not read",
}


class PublishOptions(NamedTuple):
    """What is asked for. `wait` is a duration as it was typed; None: DNS is not checked."""

    fmt: PublicationFormat = PublicationFormat.TABLE
    output: Path | None = None
    dry_run: bool = False
    yes: bool = False
    replace: bool = False
    wait: str | None = None

    def require_sound(self, *, is_interactive: bool) -> None:
        """Raise UsageError for options that do not go together, or without a terminal to ask on."""
        if self.wait is not None:
            read_duration("--wait", self.wait)
        if self.dry_run and self.yes:
            raise UsageError("--dry-run cannot be combined with --yes", hint="remove one of them")
        if self.dry_run and self.wait is not None:
            raise UsageError("--wait has no effect with --dry-run", hint="remove one of them")
        if self.dry_run or self.yes:
            return
        if self.fmt is not PublicationFormat.TABLE:
            raise UsageError(
                f"--format {self.fmt} needs --dry-run or --yes",
                hint="to see the plan, add --dry-run; to make the changes, --yes",
            )
        if not is_interactive:
            raise UsageError(
                "there is no terminal to ask whether to make the changes",
                hint="add --yes to make them, or --dry-run to see them",
            )


def open_dns_targets(session: Session) -> Sequence[ConfiguredTarget]:
    """The targets of the profile. Raises UsageError if there is none, or one cannot be used."""
    if not session.has_dns_targets:
        profile, file = session.profile.name, session.config_file
        how = f"write `dns` into {file} (docs/publish.md shows how)"
        if session.config.dns:
            how = (
                f"add {profile} to `profiles` of an entry of `dns` in {file}: "
                f"`profiles: [{profile}]`"
            )
        raise UsageError(
            f"no DNS target is configured for the profile {profile}",
            hint=f"{how}, or publish by hand: {next_steps.publish(())}",
        )
    from dkimctl.publishing.targets import open_targets

    return open_targets(session.config, session.profile.name, session.secrets)


def select_to_publish(
    session: Session, words: Sequence[str]
) -> tuple[Sequence[Registration], ExitCode]:
    """What is registered and selected, but for disabled keys and those past their grace period.

    The exit code is for what cannot be selected. Warns about records that are not sound. Raises
    like `registered_results`.
    """
    selection = read_selection(session, words)
    results = registered_results(session, selection)
    sound = Checkable(results, session.reporter, retired={}, left_out="not published")
    registrations = without_left_out(session, sound.registrations)
    return registrations, worst([sound.status, warn_unmatched(session, selection)])


def without_left_out(session: Session, registrations: Iterable[Registration]) -> list[Registration]:
    """The registrations, but for disabled keys and those past their grace period, with a note."""
    retired = retired_keys(session)
    registrations = list(registrations)
    old = [registration for registration in registrations if registration.key in retired]
    disabled = [registration for registration in registrations if not registration.signs]
    for which, left_out in (("past their grace period", old), ("disabled", disabled)):
        if left_out:
            names = few([named(registration) for registration in left_out])
            session.reporter.note(f"dkimctl: left out, {which}: {len(left_out)} ({names})")
    return [
        registration
        for registration in registrations
        if registration.signs and registration.key not in retired
    ]


def publish_records(
    session: Session,
    registrations: Sequence[Registration],
    targets: Sequence[ConfiguredTarget],
    options: PublishOptions,
    view: PublicationView,
) -> ExitCode:
    """Show the plan, make the changes if that is wanted, and show what became of them."""
    from dkimctl.publishing.plan import make_plan

    reporter = session.reporter
    progress = PublicationProgress(reporter, len(registrations), "read")
    with unchanged_if_interrupted(), progress:
        plan = make_plan(
            registrations,
            targets,
            remove=False,
            replace_foreign=options.replace,
            progress=progress.show,
        )
    items = list(items_of(plan))
    if options.dry_run:
        return view.show_plan(items)
    is_table = options.fmt is PublicationFormat.TABLE
    written = view.write(items) if is_table else ExitCode.OK
    count = sum(len(zone.to_apply) for zone in plan.zones)
    if count and not options.yes:
        refusal = UsageError("there is no terminal to ask on", hint="add --yes")
        question = f"Make {counted(count, 'change')} in DNS?"
        if not terminal.confirms(question, refusal=refusal, hint="nothing was changed"):
            reporter.note("dkimctl: nothing was changed")
            return ExitCode.NO
    applied, is_stopped = _make_changes(plan, count, reporter)
    items = [with_outcome(item, applied) for item in items]
    reported = view.report(items)
    status = ExitCode.OK
    try:
        if is_stopped and len(applied) < count:
            made = sum(item.is_applied for item in items)
            total = sum(item.step in CHANGING for item in items)
            raise Interrupted(
                f"interrupted: {made} of {counted(total, 'change')} made",
                hint=f"to go on: `{next_steps.same_command()}`",
            )
        done = [item.registration for item in items if item.is_applied or item.step is Action.KEEP]
        if options.wait is not None and done:
            status, checks = check_records(
                session, done, options.wait,
                is_shown=view.is_shown and is_table, selection=view.words,
            )  # fmt: skip
            items = [item._replace(check=checks.get(item.key)) for item in items]
    finally:
        if not is_table:  # also after Ctrl-C: what was changed
            written = view.write(items)
    if options.wait is None and any(item.is_applied for item in items):
        wait = next_steps.wait_for(view.words)
        reporter.note(f"dkimctl: next, check that all servers have them: {wait}")
    return worst([written, reported, status])


@contextmanager
def unchanged_if_interrupted() -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM end the command, which has changed nothing yet."""
    try:
        with interrupting():
            yield
    except KeyboardInterrupt:
        hint = "nothing was changed; run the same command again"
        raise Interrupted(hint=hint) from None


def _make_changes(
    plan: PublicationPlan, total: int, reporter: Reporter
) -> tuple[dict[RegistrationKey, Applied], bool]:
    """What became of each change, and whether the first Ctrl-C or SIGTERM has stopped more.

    Raises Interrupted at the second, which does not wait for the changes that were begun.
    """
    from dkimctl.publishing.plan import apply_plan

    applied: dict[RegistrationKey, Applied] = {}
    is_stopped = is_announced = False
    progress = PublicationProgress(reporter, total, "changed")

    def stop() -> None:  # called in a signal handler
        nonlocal is_stopped
        is_stopped = True

    def emit(item: Applied) -> None:
        applied[item.change.registration.key] = item
        progress.show(len(applied))

    def wait() -> None:
        nonlocal is_announced
        if is_stopped and not is_announced:
            is_announced = True
            done = "stopping when the changes that were begun are done"
            reporter.note(f"dkimctl: {done}; Ctrl-C again ends at once")
        progress.show(len(applied))

    try:
        with stopping(stop), progress:
            apply_plan(plan, emit, is_stopped=lambda: is_stopped, wait=wait)
    except KeyboardInterrupt:
        made = sum(change.error is None for change in applied.values())
        raise Interrupted(
            f"interrupted: {made} of {counted(total, 'change')} made, perhaps more",
            hint=f"to go on: `{next_steps.same_command()}`",
        ) from None
    return applied, is_stopped


class PublicationView:
    """Shows the items of a plan: on stdout in the format of `options`, on stderr the summary."""

    def __init__(
        self,
        reporter: Reporter,
        options: PublishOptions,
        words: Sequence[str],  # the selection as it was typed
        *,
        is_shown: bool = True,  # else warnings have what the table would
    ) -> None:
        self.words = words
        self.is_shown = is_shown
        self._reporter = reporter
        self._options = options

    def show_plan(self, items: Sequence[PlanItem]) -> ExitCode:
        """Show what would be changed; returns the exit code of --dry-run."""
        codes = [self.write(items), self.report(items)]
        if any(item.step in CHANGING for item in items):
            codes.append(ExitCode.NO)
            command = next_steps.publish(self.words, *self._flags(), by_target=True)
            self._reporter.note(f"dkimctl: nothing was changed; next: {command}")
        return worst(codes)

    def write(self, items: Sequence[PlanItem]) -> ExitCode:
        """Write the items to stdout, or to the file; reports why it cannot."""
        if not self.is_shown:
            return ExitCode.OK
        fmt, output, lists_all = self._options.fmt, self._options.output, self._reporter.verbose
        is_long = output is None and sys.stdout.isatty() and len(items) > LONG_TABLE
        is_cut = not lists_all and (fmt is PublicationFormat.MARKDOWN or is_long)
        layout = table_layout(self._reporter, output)._replace(
            only_attention=is_cut, shown_by="--verbose", most_alike=MAX_ALIKE if is_cut else None
        )
        chunks = render_changes(items, fmt, layout, shows_kept=lists_all)
        try:
            write_chunks(chunks, output, is_paged=fmt is PublicationFormat.TABLE)
        except OutputError as error:
            self._reporter.error(error)
            return error.exit_code
        return ExitCode.OK

    def report(self, items: Sequence[PlanItem]) -> ExitCode:
        """Report the totals, what failed, and what needs attention; returns the exit code."""
        in_order = sorted(items, key=lambda item: _ORDER[item.step])
        counts = Counter(map(_word, in_order))
        text = ", ".join(f"{word} {count}" for word, count in counts.items())
        self._reporter.summarize(text or "nothing to do", counts)
        self._report_failures(item for item in items if item.error is not None)
        if blocked := [item for item in items if item.step is Action.BLOCKED]:
            self._warn_blocked(blocked)
        if uncovered := [item for item in items if item.step is Action.UNCOVERED]:
            domains = (item.registration.sign_domain for item in uncovered)
            by_hand = next_steps.publish(next_steps.select_domains(domains, self.words))
            self._reporter.warn(
                f"in no zone of a DNS target: {_names(uncovered)}",
                hint=f"add the zone to `dns` in the config file, or change it by hand: {by_hand}",
                code=Action.UNCOVERED,
            )
        codes = [item.error.exit_code for item in items if item.error is not None]
        return worst([*codes, *([ExitCode.NO] if blocked or uncovered else [])])

    def _report_failures(self, items: Iterable[PlanItem]) -> None:
        """One error for the items of a zone that failed alike; with --verbose of all zones."""
        groups: dict[tuple[str, str, str], list[PlanItem]] = {}
        for item in items:
            kind = without_names(item.reason, *item.key)
            groups.setdefault((item.target, item.zone, kind), []).append(item)
        alike = list(groups.values())
        shown = alike if self._reporter.lists_all else alike[:MAX_ALIKE]
        for group in shown:
            self._reporter.error(_error_of(group))
        if left := len(alike) - len(shown):
            self._reporter.error(DkimctlError(f"and {left:,} more (--verbose lists all)"))

    def _warn_blocked(self, items: Sequence[PlanItem]) -> None:
        if not self.is_shown:  # no table gives the reasons
            warnings = AlikeWarnings(self._reporter)
            for item in items:
                kind = f"blocked: {without_names(item.reason, *item.key)}"
                warnings.warn(f"{item.fqdn} is blocked: {item.reason}", kind=kind, code=item.step)
            warnings.close()
        states = [item.change.before for item in items if item.change]
        advice = []
        if any(state.alias for state in states):
            advice.append("remove the CNAME or DNAME")
        if delegated := dict.fromkeys(
            printable(state.delegated) for state in states if state.delegated
        ):
            advice.append(f"for {few([*delegated])}, add a DNS target that has that zone")
        if any("--replace" in item.reason for item in items):
            replace = next_steps.publish(self.words, *self._flags(), "--replace", by_target=True)
            advice.append(f"{replace} replaces TXT records of others")
        self._reporter.warn(
            f"blocked by what is in DNS: {_names(items)}",
            hint="; ".join(advice),
            code=Action.BLOCKED,
        )

    def _flags(self) -> list[str]:
        """The options that decide what is changed."""
        return ["--replace"] if self._options.replace else []


def _word(item: PlanItem) -> str:
    if item.step not in CHANGING:
        return _OTHER_WORDS[item.step]
    return "failed in DNS" if item.error is not None else _WORDS[item.step][item.is_applied]


def _names(items: Sequence[PlanItem]) -> str:
    return f"{len(items)} ({few([named(item.registration) for item in items])})"


def _error_of(group: list[PlanItem]) -> DkimctlError:
    """One error for items that failed alike in a zone."""
    first, *more = group
    message = first.reason
    if more:
        if any(item.reason != message for item in more):
            message = without_names(message, *first.key)
        names = few([item.fqdn for item in group])
        message = f"{counted(len(group), 'record')} ({names}): {message}"
    elif first.fqdn not in message:
        message = f"{first.fqdn}: {message}"
    error = DkimctlError(message, hint=first.error.hint if first.error else "")
    error.code = first.error.code if first.error else error.code
    return error
