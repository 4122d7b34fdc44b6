"""`dkimctl rotate status`: where each key is in its life, and what comes next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli.options import LEDGER, App, KeyFormatOption, OutputOption, examples
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.results import worst_check
from dkimctl.cli.output.rotation_status import show_stages
from dkimctl.cli.selection import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import UsageError
from dkimctl.render.renderer import KeyFormat

app = App()

TimelineOption = Annotated[
    bool, typer.Option("--timeline", help="Draw the life of each key, with today as a line.")
]


@app.command(
    "status",
    epilog=examples(
        "dkimctl rotate status",
        "dkimctl rotate status --timeline '*.example.com'",
        "dkimctl rotate status --format json --output keys.json",
    ),
    shows=LEDGER,
)
def status(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    fmt: KeyFormatOption = None,
    timeline: TimelineOption = False,
    output: OutputOption = None,
) -> int:
    """Show where each key is in its life, since when, and what comes next.

    What is due first comes first; of many keys that are alike, a terminal shows some. Nothing is
    sent: this is what the ledger knows.

    The exit code is 1 if something is urgent, or overdue for longer than `lead` of `rotation`.
    """
    from dkimctl.rotation.stages import read_stages

    session = open_session(ctx)
    if timeline and fmt not in (None, KeyFormat.TABLE):
        raise UsageError(
            f"--timeline has no effect with --format {fmt}", hint="leave out one of the two"
        )
    if output is not None:
        require_writable(output)
    now = datetime.now(UTC)
    selected = read_selection(session, selection)
    ledger = session.open_ledger(for_writing=False)
    statuses = read_stages(ledger, selected, session.config.rotation, now)
    if not statuses:
        require_empty(session, selected)
    shown = show_stages(session, statuses, fmt, output, now=now, is_timeline=timeline)
    return worst_check([shown, warn_unmatched(session, selected)])
