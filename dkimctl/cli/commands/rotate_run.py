"""`dkimctl rotate run`: everything that is due, from a timer."""

import contextlib
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import next_steps, options
from dkimctl.cli.checking import CheckProgress, open_source, warn_of_urgent
from dkimctl.cli.guide import URGENT_WARNINGS
from dkimctl.cli.notify import send_run_notices
from dkimctl.cli.options import App, TableOrJson, option, read_duration
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.progress import RegistrationProgress
from dkimctl.cli.report import Reporter, warn_alike
from dkimctl.cli.selected import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import Session, open_session
from dkimctl.cli.terminal import interrupting, stopping
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, worst_check
from dkimctl.formats.renderer import TableLayout
from dkimctl.formats.table import Row, Style, below, table
from dkimctl.models import NO_REPORTS_FOR, named
from dkimctl.publishing.targets import open_targets
from dkimctl.rotation.due import Report, RunPolicy, State, Step, Task, Tools
from dkimctl.rotation.run import RotationRun
from dkimctl.text import (
    MAX_ALIKE,
    Grouping,
    and_more,
    counted,
    few,
    listed,
    printable,
    readable,
    without_names,
)

app = App()
_TOGETHER = (State.FAILED, State.BLOCKED, State.WAITING)  # tasks of one cause share a row
_MAX_NAMED = 5  # of their keys
_STYLES = {
    State.DONE: Style.GREEN,
    State.FAILED: Style.RED,
    State.BLOCKED: Style.RED,
    State.BY_HAND: Style.YELLOW,
}
# What is left to people, and the command for the domains of these tasks.
_LEFT = (
    (Step.PUBLISH, State.BLOCKED, "for what stands in the way, and what to do about it",
     lambda words: next_steps.publish(words, "--dry-run", by_target=True)),
    (Step.PUBLISH, State.BY_HAND, "to publish by hand what no target covers", next_steps.publish),
    (Step.REMOVE, State.BY_HAND, "to remove by hand what no target covers",
     lambda words: f"`{next_steps.rotate_retired(words)}`"),
)  # fmt: skip
_DONE = {Step.REGISTER: "registered", Step.PUBLISH: "published", Step.REMOVE: "removed"}


@app.command(
    "dkimctl rotate run",
    "dkimctl rotate run --dry-run",
    "dkimctl rotate run --quiet",
    "dkimctl rotate run '*.example.com' --wait 10m",
    "dkimctl rotate run --output run.json",
)
def run(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    dry_run: Annotated[bool, option("--dry-run -n", "Show what is due, and do nothing.")] = False,
    wait: Annotated[str, option("--wait TIME",
        "Longest wait until all servers have the changes.")] = "2m",
    allow_wildcard_shadowing: options.AllowShadowingOption = False,
    despite_reports: Annotated[bool, option("--despite-reports",
        "Also remove keys with which mail still passes, by DMARC reports.")] = False,
    fmt: options.TableOrJsonOption = None,
    output: options.OutputOption = None,
) -> int:  # fmt: skip
    """Replace old keys, publish, check, and remove retired records.

    It does what is due; `dkimctl timer` has systemd or cron run it. Records that no DNS target of
    the config file covers are listed, to change by hand. With `notify` in the config file, it sends
    notices of problems.

    --dry-run does not ask DNS about keys that the last look saw published, unless a removal depends
    on them. If such a record has gone since then, only `dkimctl check-dns` or a real run notices.

    The exit code is 1 if something is urgent or needs a decision; with --dry-run, also if something
    is known to be due.
    """
    session = open_session(ctx)
    fmt = read_format(TableOrJson, fmt, output)
    seconds = read_duration("--wait", wait, may_be_zero=True).total_seconds()
    policy = RunPolicy(
        session.config.rotation, seconds, dry_run, allow_wildcard_shadowing, despite_reports
    )
    selected = read_selection(session, selection)
    ledger = session.open_ledger(for_writing=False)
    # The query is in no variable, where it would stay open, with its rows, for the whole run.
    if next(selected.pick(ledger.ours()), None) is None if selection else not ledger.has_ours():
        require_empty(session, selected)

    reporter = session.reporter
    tools = Tools(
        open_ledger=session.open_ledger, lock_account=session.lock_account,
        connect=session.connect, limits=session.limits, open_source=open_source,
        open_targets=lambda: open_targets(session.config, session.profile.name, session.secrets),
        warn=lambda text: reporter.warn(reporter.complete(text)), stopping=stopping,
        observing=lambda total: RegistrationProgress(total, reporter),
        watching=lambda wanted: CheckProgress(reporter, wanted),
        clock=lambda: datetime.now(UTC),
        ask_time=lambda: session.client.ask_time(),  # noqa: PLW0108 - the client is made then
    )  # fmt: skip
    runs: list[RotationRun] = []

    def execute() -> Report:
        with contextlib.nullcontext() if dry_run else session.lock_account("rotate"):
            runs.append(RotationRun(selected, policy, tools))
            return runs[-1].execute()

    told = ExitCode.OK
    try:
        with interrupting():
            report = execute()
            if not dry_run:
                told, report = send_run_notices(session, selected, report, execute)
    except (KeyboardInterrupt, DkimctlError) as error:
        # What was done until then; the second run is that of the look before a notice.
        begun = [run.report for run in runs if run.report.tasks]
        if begun:
            report = begun[-1] if len(begun) == 1 else begun[-1].after(begun[0])
            show_report(session, report, fmt, output, is_dry=dry_run)
        if isinstance(error, DkimctlError):
            raise
        raise Interrupted(hint="the same command continues where this one stopped") from None
    show_report(session, report, fmt, output, is_dry=dry_run)
    due = ExitCode.NO if dry_run and report.is_due else ExitCode.OK
    return worst_check([due, told, *report.exit_codes(), warn_unmatched(session, selected)])


def show_report(
    session: Session, report: Report, fmt: TableOrJson | None, output: Path | None, *, is_dry: bool
) -> None:
    """Write the tasks to stdout or a file, and say what matters most; with --quiet if needed."""
    reporter, has_targets = session.reporter, session.has_dns_targets
    tasks = sorted(report.tasks, key=lambda task: task.registration.sign_domain)
    tasks.sort(key=lambda task: (not task.urgency, [*State].index(task.state)))
    if not reporter.quiet or report.is_worth_mail or is_dry:
        if fmt is TableOrJson.JSON:
            items = [_fields(task) for task in tasks]
            document = {"items": items, "count": len(items), "postponed": report.postponed,
                        "not_asked": report.not_asked,
                        "failing": [mail._asdict() for mail in report.failing]}  # fmt: skip
            write_chunks([json.dumps(document, indent=2) + "\n"], output)
        else:
            write_chunks(_table(reporter, tasks, output), output, is_paged=True)
    for error in {error.message: error for error in report.errors}.values():
        reporter.error(error)
    urgent = {
        urgency: [named(task.registration) for task in tasks if task.urgency is urgency]
        for urgency in URGENT_WARNINGS
    }
    domains = [task.registration.sign_domain for task in tasks if task.urgency]
    selection = next_steps.select_domains(domains)
    publish = next_steps.publish(selection, by_target=has_targets)
    how = f"publish the records: {publish}, then {next_steps.wait_for(selection)}"
    if any(task.urgency and task.state in (State.FAILED, State.BLOCKED) for task in tasks):
        how = "correct what made it fail; the next run publishes the records"
    warn_of_urgent(reporter, urgent, selection, how)
    by_hand = [named(task.registration) for task in tasks if task.state is State.BY_HAND]
    if has_targets and by_hand:
        # Also with --quiet: the user may believe that the targets cover all domains.
        reporter.warn(
            f"no DNS target has the zone of {counted(len(by_hand), 'key')}: "
            f"{listed(by_hand, most=_MAX_NAMED)}",
            hint="add the zone to `dns` in the config file, or change it by hand",
            code="uncovered",
        )
    for text in report.limits:
        reporter.warn(text, code="limit")
    warn_alike(reporter, (
        (f"mail with {'the removed key ' * mail.is_removed}{named(mail)} fails: {mail}",
         "mail with these keys fails", "failing") for mail in report.failing
    ))  # fmt: skip
    if report.unreported:
        text = f"no reports for {counted(len(report.unreported), 'domain')} in the last "
        text += f"{NO_REPORTS_FOR.days} days ({few(report.unreported)})"
        reporter.note(f"dkimctl: {text}")
    for step, state, text, command in _LEFT:
        if left := [task for task in report.tasks if (task.step, task.state) == (step, state)]:
            words = next_steps.select_domains(task.registration.sign_domain for task in left)
            reporter.note(f"dkimctl: {text}: {command(words)}")
    counts = Counter(
        _DONE[task.step] if task.state is State.DONE else f"{task.step}: {task.state}"
        for task in report.tasks
    )
    parts = [f"{word} {count}" for word, count in counts.items()]
    if report.postponed:
        parts.append(f"{counted(report.postponed, 'successor')} left for the next days (limit)")
    nothing = "nothing is due"
    if report.not_asked:
        nothing = "nothing is known to be due"
        reporter.note(
            f"dkimctl: DNS was not asked about {counted(report.not_asked, 'key')} that the last "
            "look saw published; `dkimctl check-dns` asks about all"
        )
    reporter.note(f"dkimctl: {', '.join(parts) or nothing}")


def _fields(task: Task) -> dict[str, str | None]:
    """What JSON has of a task."""
    registration, record = task.registration, task.registration.record
    return {
        "sign_domain": registration.sign_domain,
        "selector": registration.selector,
        "fqdn": record.fqdn if record else None,
        "value": record.value if record and task.state is State.BY_HAND else None,
        "start_date": registration.start_date,
        "step": task.step,
        "state": task.state,
        "urgency": task.urgency or None,
        "reason": task.reason or None,
        "hint": (task.error.hint or None) if task.error is not None else None,
    }


def _table(reporter: Reporter, tasks: Sequence[Task], output: Path | None) -> Iterator[str]:
    """A row for each task; tasks of one cause, such as a server that is down, share a row."""
    shows_all = reporter.verbose or output is not None
    layout = table_layout(reporter, output)
    rows_of: dict[Hashable, list[Task]] = {}
    for number, task in enumerate(tasks):
        cause: Hashable = number
        if not shows_all and task.state in _TOGETHER:
            hint = task.error.hint if task.error is not None else ""
            cause = (task.urgency, task.step, task.state, _nameless(task), hint)
        rows_of.setdefault(cause, []).append(task)
    grouping = Grouping[str](None if shows_all else MAX_ALIKE)
    rows = [
        _row(reporter, alike, layout)
        for alike in rows_of.values()
        if grouping.shows(f"{alike[0].step}: {alike[0].state}")
    ]
    rows += [Row(below=below(and_more(count, kind), layout)) for kind, count in grouping.rest()]
    return table(["DOMAIN", "SELECTOR", "STEP", "STATE"], rows, layout)


def _row(reporter: Reporter, alike: Sequence[Task], layout: TableLayout) -> Row:
    """The row of tasks of one cause; a TXT value is on one line, however long, to be copied."""
    task, registration = alike[0], alike[0].registration
    names, reason, lines = "", task.reason, list[str]()
    domain, selector = readable(registration.sign_domain, layout.encoding), registration.selector
    if len(alike) > 1:
        domain, selector = f"{len(alike):,} keys", None
        names = listed([named(task.registration) for task in alike], most=_MAX_NAMED)
        if any(task.reason != reason for task in alike):
            reason = _nameless(task)
    hint = reporter.complete_hint(task.error.hint) if task.error is not None else ""
    for text in (names, reporter.complete(reason), hint):
        lines += below(text, layout)
    if task.state is State.BY_HAND and (record := registration.record):
        verb = "add" if task.step is Step.PUBLISH else "remove"
        lines += below(f"{verb} the TXT record {task.alias_end or record.fqdn}", layout)
        if task.step is Step.PUBLISH:
            lines.append(f"{printable(record.value)}\n")
    state = f"{task.state}, URGENT" if task.urgency else task.state
    style = Style.BOLD_RED if task.urgency else _STYLES.get(task.state, "")
    return Row((domain, selector, task.step, state), ["", "", "", style], lines)


def _nameless(task: Task) -> str:
    return without_names(task.reason, task.registration.sign_domain, task.registration.selector)
