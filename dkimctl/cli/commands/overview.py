"""`dkimctl overview`: what matters today, on one screen or as a page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli.options import LEDGER, App, TableOrJson, TableOrJsonOption, examples
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.overview import show_overview
from dkimctl.cli.selection import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import UsageError

app = App()

HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write it as a page that needs no other file."),
]


@app.command(
    "overview",
    epilog=examples(
        "dkimctl overview",
        "dkimctl overview '*.example.com'",
        "dkimctl overview --html overview.html",
    ),
    shows=LEDGER,
)
def overview(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
    html: HtmlOption = None,
) -> int:
    """Show what is urgent, what comes this week and month, and how old the keys are.

    Nothing is sent: this is what the ledger knows. Run `dkimctl check-dns` first for what DNS has
    now.
    """
    from dkimctl.rotation.key_list import read_keys
    from dkimctl.rotation.overview import make_overview

    session = open_session(ctx)
    if html is not None:
        if fmt is not TableOrJson.TABLE:
            raise UsageError(f"--html has no effect with --format {fmt}", hint="leave out one")
        require_writable(html)
    now = datetime.now(UTC)
    selected = read_selection(session, selection)
    ledger = session.open_ledger(for_writing=False)
    keys = read_keys(ledger, selected, session.config.rotation, now)
    if not keys:
        require_empty(session, selected)
    show_overview(session, make_overview(keys, now), is_json=fmt is TableOrJson.JSON, html=html)
    return warn_unmatched(session, selected)
