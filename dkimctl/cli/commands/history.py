"""`dkimctl history`: what happened to the keys, when, and who did it."""

import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated

import typer

from dkimctl.cli.options import App, KeyFormatOption, OutputOption, option, read_duration
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.selected import SelectionArgument, read_selection, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.formats.data import open_data
from dkimctl.formats.renderer import KeyFormat, TableLayout, render_all
from dkimctl.formats.table import UNLIMITED, Row, below, table
from dkimctl.models import Event, written_time
from dkimctl.text import few, quoted, readable

app = App()


@app.command(
    "dkimctl history example.com",
    "dkimctl history --since 30d '*.example.com'",
    "dkimctl history --since 2026-11-01 --output november.csv",
)
def history(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    since: Annotated[str | None, option("--since TIME",
        "Only from this date (UTC), or for this long: 30d.")] = None,
    wide: Annotated[bool, option("--wide -w", "Show all columns.")] = False,
    fmt: KeyFormatOption = None,
    output: OutputOption = None,
) -> int:  # fmt: skip
    """Show what happened to the keys, when, and by whom; newest last.

    A key is `seen` when a look at DNS finds its record for the first time, or finds something else
    than before. Forgotten keys are shown, too. The times are those of the machine that did it.
    """
    session = open_session(ctx)
    fmt = read_format(KeyFormat, fmt, output) or KeyFormat.TABLE
    if wide and fmt is not KeyFormat.TABLE:
        raise UsageError(f"--wide has no effect with --format {fmt}", hint="leave out one of them")
    start = None if since is None else _read_since(since)
    selected = read_selection(session, selection)
    events = selected.pick(session.open_ledger(for_writing=False).events(start))
    first = next(events, None)
    if first is None and not selected.is_empty:
        what = f"no event of {few(selection)}" if selection else "no event"
        raise NegativeAnswer(
            f"{what} in the profile {session.profile.name}{f' since {since}' if since else ''}",
            hint="what was done before the ledger had events is not known; `dkimctl list --all` "
            "shows the keys",
        )
    layout = table_layout(session.reporter, output)._replace(wide=wide)
    if output is not None or not sys.stdout.isatty():  # one line an event, for other programs
        layout = layout._replace(width=UNLIMITED)
    found = chain([first] if first else [], events)
    if fmt is KeyFormat.TABLE:
        rows = (_row(event, layout) for event in found)
        titles = ("WHEN", "DOMAIN", "SELECTOR", "WHAT", "USER", "MACHINE", "COMMAND")
        chunks = table(titles, rows, layout, optional=("COMMAND", "MACHINE"))
    else:
        chunks = render_all(open_data(fmt, Event._fields, _cells, "count"), found)
    write_chunks(chunks, output, is_paged=fmt is KeyFormat.TABLE)
    return warn_unmatched(session, selected, "not in the history")


_LONG = 30  # characters of a detail that gets a line of its own, if lines are short


def _row(event: Event, layout: TableLayout) -> Row:
    is_long = len(event.detail) > _LONG and layout.width < UNLIMITED
    what = f"{event.what}: {event.detail}" if event.detail and not is_long else event.what
    cells = (
        f"{event.at:%Y-%m-%dT%H:%MZ}" if event.at else None,
        readable(event.sign_domain, layout.encoding),
        *(event.selector, what, event.user, event.machine, event.command),
    )
    return Row(cells, (), below(event.detail, layout) if is_long else ())


def _cells(event: Event) -> tuple[str | None, ...]:
    return written_time(event.at), *event[1:]


def _read_since(text: str) -> datetime:
    """A date, or the time that is so long ago. Raises UsageError."""
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    with suppress(UsageError, OverflowError):
        return datetime.now(UTC) - read_duration("--since", text)
    hint = "write a date such as 2026-11-01, or how long ago, such as 30d"
    raise UsageError(f"in --since: invalid time: {quoted(text)}", hint=hint)
