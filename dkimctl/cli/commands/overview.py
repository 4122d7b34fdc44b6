"""`dkimctl overview`: what matters today, on one screen or as a page."""

import shutil
import sys
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import next_steps
from dkimctl.cli.options import App, TableOrJson, TableOrJsonOption, option, read_new_file
from dkimctl.cli.output import table_layout, write_chunks
from dkimctl.cli.selected import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, UsageError, worst
from dkimctl.formats.overview_text import Overview, overview_lines, overview_text
from dkimctl.formats.pages import overview_page
from dkimctl.models import named
from dkimctl.rotation.life import read_keys
from dkimctl.text import few

_LINES = 50  # where there is no terminal

app = App()


@app.command(
    "dkimctl overview",
    "dkimctl overview '*.example.com'",
    "dkimctl overview --quiet",
    "dkimctl overview --html overview.html",
)
def overview(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    fmt: TableOrJsonOption = None,
    html: Annotated[Path | None, option("--html FILE",
        "Write it as an HTML page that needs no other file.", parser=read_new_file)] = None,
) -> int:  # fmt: skip
    """Show what is urgent, what comes next, and how old the keys are.

    Nothing is sent: this is what the ledger knows. Run `dkimctl check-dns` first for what DNS has
    now.

    The exit code is 1 if something is urgent, or overdue for longer than `lead` of `rotation`; with
    --quiet, nothing is shown otherwise.
    """
    session = open_session(ctx)
    reporter = session.reporter
    if html is not None and fmt is TableOrJson.JSON:
        raise UsageError(f"--html has no effect with --format {fmt}", hint="leave out one")
    now = datetime.now(UTC)
    selected = read_selection(session, selection)
    keys = read_keys(session.open_ledger(for_writing=False), selected, session.config.rotation, now)
    first = [*islice(keys, 1)]
    if not first:
        require_empty(session, selected)
    made = Overview(chain(first, keys), now)
    if html is not None:
        write_chunks([overview_page(made, session.profile.name)], html)
        reporter.note(f"dkimctl: wrote {html}")
    elif fmt is TableOrJson.JSON:
        write_chunks(overview_lines(made), None)
    elif made.is_bad or not reporter.quiet:
        step = ""
        if made.urgent:
            urgent = next_steps.select_domains(key.sign_domain for key in made.urgent)
            publish = next_steps.publish(urgent, by_target=session.has_dns_targets)
            step = f"next: {publish}, then {next_steps.wait_for(urgent)}"
        layout = table_layout(reporter, None)
        lines = shutil.get_terminal_size().lines if sys.stdout.isatty() else _LINES
        height = lines - (len(step) // layout.width + 1)
        write_chunks(overview_text(made, layout, height, reporter.complete), None, is_paged=True)
        if step:
            reporter.note(step)
    for text in made.limits:
        reporter.warn(text, code="limit")
    if made.overdue:
        since = min(key.due for key in made.overdue if key.due is not None)
        how = "says how to see what its runs say" if session.has_timer else "installs a timer"
        reporter.warn(
            f"overdue, since {since:%Y-%m-%d} at the earliest: {len(made.overdue)} "
            f"({few([named(key) for key in made.overdue])})",
            hint=f"`dkimctl timer` {how}; see also what `rotate run` says, and whether `limit` of "
            "`rotation` is too low",
            code="overdue",
        )
    return worst([ExitCode.NO if made.is_bad else ExitCode.OK, warn_unmatched(session, selected)])
