"""`dkimctl rotate run`: everything that is due, from a timer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.interruption import interrupting
from dkimctl.cli.options import (
    ACCOUNT,
    CONNECTION,
    SENDING,
    App,
    OutputOption,
    TableOrJson,
    TableOrJsonOption,
    examples,
    read_duration,
)
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.results import worst_check
from dkimctl.cli.output.rotation_run import show_report
from dkimctl.cli.selection import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import DkimctlError, ExitCode, Interrupted
from dkimctl.ledger.selection import Selection

if TYPE_CHECKING:
    from dkimctl.rotation.run.report import Report

_WAIT = "2m"

app = App()

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what is due, and do nothing.")
]
WaitOption = Annotated[
    str,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="Check again until all servers have what was changed, for at most this long.",
    ),
]


@app.command(
    "run",
    epilog=examples(
        "dkimctl rotate run",
        "dkimctl rotate run --dry-run",
        "dkimctl rotate run --quiet",
        "dkimctl rotate run '*.example.com' --wait 10m",
        "dkimctl rotate run --format json --output run.json",
    ),
    shows=(*ACCOUNT, *CONNECTION, *SENDING),
)
def run(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    dry_run: DryRunOption = False,
    wait: WaitOption = _WAIT,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
    output: OutputOption = None,
) -> int:
    """Do everything that is due: replace old keys, publish, check, and remove retired records.

    Run it once a day, from a timer or cron. What no DNS target of the config file covers is listed,
    to be done by hand. `notify` in the config file says how to tell of problems.

    The exit code is 1 if something is urgent or needs a decision; with --dry-run, also if something
    is due.
    """
    from dkimctl.cli.notify import RunNotices
    from dkimctl.cli.rotation_tools import tools_of
    from dkimctl.rotation.run.run import RotationRun
    from dkimctl.rotation.run.tools import RunPolicy

    session = open_session(ctx)
    seconds = read_duration("--wait", wait, may_be_zero=True).total_seconds()
    policy = RunPolicy(session.config.rotation, seconds, dry_run)
    if output is not None:
        require_writable(output)  # before anything is done
    selected = read_selection(session, selection)
    _require_match(session, selected)

    runs: list[RotationRun] = []

    def execute() -> Report:
        with _lock(session, dry_run):
            runs.append(RotationRun(selected, policy, tools_of(session)))
            return runs[-1].execute()

    def show(report: Report) -> None:
        show_report(
            session.reporter, report, fmt, output,
            is_dry=dry_run, has_targets=session.has_dns_targets,
        )  # fmt: skip

    told = ExitCode.OK
    try:
        with interrupting():
            report = execute()
            if not dry_run:
                notices = RunNotices(session, selected, report, execute)
                told, report = notices.send(), notices.report
    except (KeyboardInterrupt, DkimctlError) as error:
        made = _made([one.report for one in runs])
        if made.tasks:
            show(made)
        if isinstance(error, DkimctlError):
            raise
        raise Interrupted(hint="the same command goes on where this one ended") from None
    show(report)
    due = ExitCode.NO if dry_run and report.is_due else ExitCode.OK
    return worst_check([due, told, *report.exit_codes(), warn_unmatched(session, selected)])


def _made(reports: Sequence[Report]) -> Report:
    """What was done until the command ended; the second report is of the look before a notice."""
    from dkimctl.rotation.run.report import Report

    begun = [report for report in reports if report.tasks]
    return begun[-1].after(begun[0]) if len(begun) > 1 else next(iter(begun), Report([]))


def _lock(session: Session, dry_run: bool) -> AbstractContextManager[None]:
    return contextlib.nullcontext() if dry_run else session.lock_rotation()


def _require_match(session: Session, selection: Selection) -> None:
    registered = session.open_ledger(for_writing=False).ours()
    if next(selection.pick(registered), None) is None:
        require_empty(session, selection)
