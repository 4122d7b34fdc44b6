"""`dkimctl register`: the whole file, safely, again and again."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkimctl.cli import next_steps, options
from dkimctl.cli.options import argument, option
from dkimctl.cli.output import OutputOptions, read_output_options
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.cli.results import at_targets, show, summary
from dkimctl.cli.sandbox import sandbox_data
from dkimctl.cli.session import Session, open_session
from dkimctl.cli.terminal import confirms, interrupting, stopping
from dkimctl.dkim import record_name
from dkimctl.errors import (
    ClocksDiffer,
    DkimctlError,
    ExitCode,
    Interrupted,
    NegativeAnswer,
    ServiceError,
    UsageError,
    naming,
    worst,
)
from dkimctl.files import new_name
from dkimctl.formats.renderer import PER_ZONE, Format, publishable
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import USABLE, DomainSpec, Outcome, Registration, Result, named
from dkimctl.names import MAX_NAME, selector_template
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.preflight import Planner, clock_fault, inspect_entries, plan
from dkimctl.specs.entries import ENTRY_FIELDS, Entries
from dkimctl.text import counted, few, readable

if TYPE_CHECKING:
    from dkimctl.publishing.plan import Target

app = options.App()
_FORMATS = [fmt for fmt in Format if fmt not in PER_ZONE]
_UNFINISHED = (Outcome.PENDING, Outcome.UNKNOWN, Outcome.FAILED)


@app.command(
    "dkimctl register domains.yaml",
    "dkimctl register --dry-run domains.yaml more.csv",
    "dkimctl register --domain example.com --domain example.net",
    "dkimctl register --assign-selector s%Y%m domains.yaml",
    "dkimctl register --publish domains.yaml",
    "dkimctl register --sandbox domains.example.yaml",
    "dkimctl register --output dkim.zone - < domains.yaml",
)
def register(
    ctx: typer.Context,
    files: Annotated[list[str] | None, argument("[FILE]...",
        "YAML, CSV or plain lists; `-` is standard input.")] = None,
    domain: Annotated[list[str] | None, option("--domain DOMAIN",
        "Also register this signing domain, without a spec file; repeatable.")] = None,
    key_len: Annotated[str | None, option("--key-len BITS",
        "Of plain lists and --domain: 2048 (default) or 1024.")] = None,
    start_date: Annotated[str | None, option("--start-date DATE",
        "Their start (default: midnight in seven days).")] = None,
    selector: Annotated[str | None, option("--selector NAME",
        "Theirs (default: the service chooses).")] = None,
    dry_run: Annotated[bool, option("--dry-run -n",
        "Show what would be done; send nothing.")] = False,
    refresh: Annotated[bool, option("--refresh",
        "Also send entries that are already in the ledger.")] = False,
    assign_selector: Annotated[str | None, option("--assign-selector TEMPLATE",
        "Selector for entries without one, such as s%Y%m or {domain}, a short hash.")] = None,
    retry_unknown: Annotated[bool, option("--retry-unknown",
        "Retry unanswered entries that have no selector; may create duplicates.")] = False,
    publish: Annotated[bool, option("--publish",
        "Then publish the records, and check DNS, without asking.")] = False,
    wait: Annotated[str | None, option("--wait TIME",
        "With --publish: longest wait until DNS has the records (default: 2m).")] = None,
    fmt: Annotated[Format | None, options.result_option("--format -f FORMAT",
        f"{', '.join(_FORMATS)} (default: table, or zone in a pipe); more: show-dns.")] = None,
    output: options.ResultsOutputOption = None,
    wide: options.WideOption = False,
) -> int:  # fmt: skip
    """Register the domains of spec files, and show their DNS records.

    Domains that are registered already are not sent again, so a second run changes nothing.
    """
    session = open_session(ctx)
    files, domains = files or [], domain or []
    selection = next_steps.select_specs(files, domains)
    if fmt in PER_ZONE:
        show_dns = next_steps.command("show-dns", selection, "--format", fmt, "--find-zones")
        hint = f"register first, then {show_dns}"
        raise UsageError(f"--format {fmt} needs the zones of your DNS", hint=hint)
    output_options = read_output_options(fmt=fmt, output=output, wide=wide)
    options.refuse_first(
        (publish and dry_run, "--publish has no effect with --dry-run",
         "register first; `dkimctl publish --dry-run` shows what would be published"),
        (refresh and dry_run, "--refresh has no effect with --dry-run",
         "a dry run shows what the ledger has, and --refresh asks the service"),
        (wait is not None and not publish,
         "--wait has no effect without --publish", "add --publish"),
        (selector is not None and assign_selector is not None,
         "--selector cannot be combined with --assign-selector", "remove one of them"),
        (not (files or domains), "missing argument 'FILE', or option '--domain'",
         "for example, `dkimctl register domains.yaml`; - is standard input"),
    )  # fmt: skip
    targets = None
    if publish:
        options.read_duration("--wait", wait or "2m")
        from dkimctl.cli.publication import open_dns_targets

        targets = open_dns_targets(session)
    stated = dict[str, object]()
    for field, text in (("key_len", key_len), ("start_date", start_date), ("selector", selector)):
        if text is not None:
            with naming(f"--{field.replace('_', '-')}"):
                stated[field] = ENTRY_FIELDS[field](text, True)
    to_publish: list[Registration] = []
    with interrupting():
        entries = session.read_specs(*files, domains=domains, stated=stated)
        specs = entries.specs
        gc.freeze()  # they stay to the end: spare the garbage collector from visiting them
        # Those that another machine may have registered, with a selector that is not known here.
        is_fixed = assign_selector is not None and "%" not in assign_selector
        without = [spec.sign_domain for spec in specs if spec.selector is None]
        unsure = [name for name in without if not (is_fixed or session.config.pool_of(name))]
        planning: dict[str, Any] = {"refresh": refresh, "retry_unknown": retry_unknown}
        if assign_selector is not None:
            selector_for = selector_template(assign_selector, datetime.now().astimezone())
            lengths = {name: len(record_name(selector_for(name), name)) for name in without}
            if too_long := [name for name, length in lengths.items() if length > MAX_NAME]:
                text = f"in --assign-selector: the selector is too long for {few(too_long)}"
                hint = f"SELECTOR._domainkey.DOMAIN may have at most {MAX_NAME} octets: "
                raise UsageError(text, hint=f"{hint}use a shorter template")
            planning["selector_for"] = selector_for
        if dry_run:
            ledger = session.open_ledger(for_writing=False)
            planner = _make_planner(session, ledger, planning, specs)
            _tell_of_new_keys(session, ledger, planner, specs, unsure)
            return _show_plan(session, entries, planner, output_options)
        status = _register(
            session, selection, entries, unsure, planning, output_options, targets, to_publish
        )
    if targets is None:
        return status
    from dkimctl.cli import publication  # DNS, which the other runs do not need

    # The plan and the checks are shown only if the results were a table on stdout.
    is_shown = output_options.fmt is Format.TABLE and output_options.output is None
    publish_options = publication.PublishOptions(
        selection, yes=True, wait=wait or "2m", is_shown=is_shown
    )
    registered = publication.without_left_out(session, to_publish)
    published = publication.publish_records(session, registered, targets, publish_options)
    return worst([ExitCode(status), published])


def _make_planner(
    session: Session, ledger: Ledger, planning: dict[str, Any], specs: Sequence[DomainSpec]
) -> Planner:
    """What plans the entries: a new one of a pool gets its next selector, or is not sent."""
    pool_of = session.config.pool_of
    planner = Planner(ledger, **planning | {"selector_for": lambda _: None})
    new = [
        spec for spec in specs if spec.selector is None and pool_of(spec.sign_domain) is not None
        and isinstance(planned := planner.plan_entry(spec), DomainSpec) and planned.selector is None
    ]  # fmt: skip
    if new:
        from dkimctl.cli.publication import with_pool_selectors  # DNS, which others do not need

        assigned = with_pool_selectors(session, new, ledger)
        chosen = {spec.sign_domain: error or spec.selector for spec, error in assigned}
        others = planning.get("selector_for", chosen.get)
        planning |= {"selector_for": lambda domain: chosen.get(domain) or others(domain)}
    return Planner(ledger, **planning)


def _warn_of_entries(session: Session, warnings: Iterable[tuple[str, str]]) -> None:
    """Warn of what is to be sent, and say where it is from if the entries may not have it."""
    where = f"`defaults` of the profile {session.profile.name} in the config file"
    for text, field in warnings:
        is_default = field in session.profile.defaults
        hint = f"where an entry does not say so, {field} is from {where}" if is_default else ""
        session.reporter.warn(session.reporter.complete(text), hint=hint)


def _show_plan(session: Session, entries: Entries, planner: Planner, output: OutputOptions) -> int:
    """Show what `register` would do; returns the exit code. Raises UsageError for other formats."""
    reporter, specs = session.reporter, entries.specs
    _warn_of_entries(session, inspect_entries(specs, planner, datetime.now(UTC), entries.dates))
    if output.is_default:
        output = output._replace(fmt=Format.TABLE)
    if output.fmt not in (Format.TABLE, Format.JSON, Format.MARKDOWN):
        hint = "use --format table, json or markdown"
        raise UsageError(f"a plan has no DNS records to show as {output.fmt}", hint=hint)
    planned, count = plan(specs, planner), len(specs)
    shown = show(planned, output, reporter, "to create", is_plan=True, expected=count)
    _note_retired(session, shown.counts)
    if shown.counts[Outcome.PENDING]:
        command = next_steps.same_command(without=("--dry-run", "-n"))
        reporter.note(f"dkimctl: nothing was sent; next: `{command}`")
    # The service was not asked: what is unknown is so in the ledger, and a no.
    return shown.status if shown.failure else min(shown.status, ExitCode.NO)


def _register(
    session: Session, selection: Sequence[str], entries: Entries, unsure: Sequence[str],
    planning: dict[str, Any], output: OutputOptions, targets: Sequence[Target] | None,
    to_publish: list[Registration],
) -> int:  # fmt: skip
    """Send what is not registered yet, and show the results; returns the exit code.

    `selection` selects the entries in later commands, and `planning` is how to plan them.
    `to_publish` gets what has a record to publish; without `targets`, says how to publish that.
    """
    reporter, specs = session.reporter, entries.specs
    pending = "not refreshed" if planning["refresh"] else "not registered"
    with ExitStack() as lock:
        lock.enter_context(session.lock_account())
        ledger = session.open_ledger(for_writing=True)
        progress = RegistrationProgress(
            len(specs), reporter, may_draw=output.fmt is Format.TABLE or not output.is_on_terminal
        )
        planner = _make_planner(session, ledger, planning, specs)
        run = RegistrationEngine(
            ledger, planner, session.connect,
            observer=progress, warn=reporter.warn, limits=session.limits,
        )  # fmt: skip
        unanswered: list[str] = []
        _warn_of_entries(session, run.prepare(specs, datetime.now(UTC), entries.dates))
        if planner.new_entries(spec for spec in specs if spec.replaces is not None):
            _require_clock(session)
        if targets is not None:
            new = planner.new_entries(spec for spec in specs if spec.enable is not False)
            _require_targets(new, targets)
        _tell_of_new_keys(session, ledger, planner, specs, unsure, asks=True)

        def settled() -> Generator[Result, None, None]:
            with progress:
                for result in run.execute(specs):
                    if targets is not None and publishable(result) is not None:
                        to_publish.append(result.registration)
                    yield result
            if run.stopped is None:
                unanswered.extend(map(named, run.left_unanswered(specs)))
            lock.close()  # the next run need not wait for the reader of this one

        with stopping(run.stop), closing(settled()) as results:
            try:
                shown = show(
                    at_targets(results, output.fmt, session.config.pool_of),
                    output, reporter, pending, expected=len(specs),
                    shown_by=reporter.complete(next_steps.command("show-dns", selection)),
                    in_background=True,  # a slow reader of stdout does not hold up the run
                )  # fmt: skip
            except DkimctlError as error:
                if error is not run.stopped:
                    raise
                # Nothing was sent, and there are no results to show.
                counts = run.counts_if_nothing_sent
                reporter.summarize(summary(counts, pending), counts)
                raise (_interrupted(counts) if isinstance(error, Interrupted) else error) from None
    _note_retired(session, shown.counts)
    if unanswered:
        reporter.warn(
            f"{len(unanswered)} entries of earlier runs, not in this one, were never answered: "
            f"{few(unanswered)}",
            hint="register a file that contains them",
        )
    if early := run.begun_early:  # the clock here is slow, or they were sent too late
        keys = "1 key signs" if len(early) == 1 else f"{len(early)} keys sign"
        reporter.warn(
            f"URGENT: {keys} already, before DNS has the record: {few(early)}",
            hint="publish their records at once (`dkimctl show-dns`, then `dkimctl check-dns`); if "
            "their start_date has not come yet, correct the clock of this machine",
            code="clock",
        )
    stopped = run.stopped
    if isinstance(stopped, Interrupted):
        raise _interrupted(shown.counts)
    if stopped is None and (count := shown.counts[Outcome.PENDING]):
        stopped = ServiceError(
            f"the service kept throttling {counted(count, 'domain')} (429)",
            hint="run the same command again later, with a lower --concurrency",
        )
    if stopped is not None:
        reporter.error(stopped)
        return worst([shown.status, stopped.exit_code])
    if targets is None and USABLE & shown.counts.keys():
        # A selection with entries that are not registered would end with exit code 1.
        selection = selection if shown.counts.keys() <= USABLE else ()
        _note_next_steps(session, selection, is_table=output.fmt is Format.TABLE)
    return shown.status


def _tell_of_new_keys(
    session: Session, ledger: Ledger, planner: Planner, specs: Sequence[DomainSpec],
    unsure: Sequence[str], *, asks: bool = False,
) -> None:  # fmt: skip
    """Say what new keys get although nobody stated it, and warn where a domain may get a second.

    That is where a ledger is new: nobody knows what is registered for the domains `unsure`. On a
    terminal it `asks`; NegativeAnswer if the answer is no.
    """
    reporter = session.reporter
    if new := planner.new_entries(spec for spec in specs if spec.implied):
        spec = new[0]
        words = {
            "key_len": f"have {spec.key_len} bits",
            "start_date": f"sign from {spec.start_date}",
        }
        texts = " and ".join(words[field] for field in spec.implied)
        names = " and ".join(f"--{field.replace('_', '-')}" for field in spec.implied)
        reporter.note(f"dkimctl: by default, new keys {texts}; to change that: {names}")
    is_sandbox = session.profile.is_sandbox
    if not (unsure and ledger.is_new) or (is_sandbox and not sandbox_data().exists()):
        return
    reporter.warn(
        f"the ledger has nothing of this account yet ({session.ledger_place}); a domain without "
        "selector that was registered elsewhere gets a second key: "
        f"{few([readable(domain) for domain in unsure])}",
        hint="to take over what is registered: there, `dkimctl show-dns --format json --output "
        "keys.json`; here, `dkimctl ledger import keys.json`",
        code="new_ledger",
    )
    if asks and not is_sandbox:
        question = f"Register {counted(len(unsure), 'domain')} without selector as new?"
        if not confirms(question, refusal=None, hint="nothing was sent"):
            raise NegativeAnswer("not confirmed, so nothing was sent")


def _require_targets(new: Sequence[DomainSpec], targets: Sequence[Target]) -> None:
    """Raise DkimctlError if a target cannot be written that has to publish one of these keys."""
    from dkimctl.publishing.targets import try_new_keys

    tried = [(spec, fault) for spec, _, fault in try_new_keys(new, targets) if fault is not None]
    if tried:
        names, fault = few([named(spec) for spec, _ in tried]), tried[0][1]
        what = f"{counted(len(tried), 'key')} could not be published ({names})"
        fault.message = f"{what}, so nothing was registered: {fault.message}"
        fault.hint = "; or ".join(filter(None, [fault.hint, "register without --publish"]))
        raise fault


def _require_clock(session: Session) -> None:
    """Raise ClocksDiffer if a start that is to come here may have passed at the service."""
    services = None
    with suppress(ServiceError):  # then nothing else is answered, either
        services = session.client.ask_time()
    fault = clock_fault(datetime.now(UTC), services, "nothing was sent")
    if isinstance(fault, ClocksDiffer):
        raise fault


def _note_next_steps(session: Session, selection: Sequence[str], *, is_table: bool) -> None:
    note = session.reporter.note
    if session.has_dns_targets:
        publish = next_steps.publish(selection, by_target=True)
        if session.has_timer:
            note(f"dkimctl: the timer publishes and checks the records; to do it now: {publish}")
            return
        note(f"dkimctl: next, publish the records: {publish}")
    elif is_table:  # other formats were written for that
        note(f"dkimctl: next, publish the records in a web panel: {next_steps.enter(selection)}")
        note(f"dkimctl: or with nsupdate: {next_steps.publish(selection)}")
        zones = ("--format", "zone", "--find-zones", "--output-dir", new_name("zones"))
        note(f"dkimctl: or as zone files: {next_steps.command('show-dns', selection, *zones)}")
    else:
        note(f"dkimctl: next, once they are in DNS, check them: {next_steps.wait_for(selection)}")
        return
    note(f"dkimctl: then check that they are published: {next_steps.wait_for(selection)}")


def _note_retired(session: Session, counts: Counter[Outcome]) -> None:
    if counts[Outcome.RETIRED]:
        session.reporter.note(
            "dkimctl: retired entries are not sent: remove them, or leave out their selectors to "
            "mean the keys in use"
        )


def _interrupted(counts: Mapping[Outcome, int]) -> Interrupted:
    total = sum(counts.values())
    done = total - sum(counts.get(outcome, 0) for outcome in _UNFINISHED)
    return Interrupted(
        f"interrupted: {done} of {total} domains are done",
        hint=f"the answers so far are in the ledger; to continue: {next_steps.same_command()}",
    )
