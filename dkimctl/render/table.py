"""Table: for people. The TXT value of a row stands below it, whole, to be copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dkimctl.models import DnsRecord, Outcome, Registration, Result
from dkimctl.text import printable

_HEADER = ("DOMAIN", "SELECTOR", "OUTCOME", "BITS", "START", "RESULT")
_GAP = 2  # columns between two cells
_RESULT_LEAST = len("201 created")
_START_FOLDED = len("2026-03-01T00:00")  # a start folds best before its offset
_GOOD = frozenset({Outcome.CREATED, Outcome.EXISTS})
_WAITING = frozenset({Outcome.PENDING, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = _GOOD | {Outcome.PENDING}


def render_table(
    results: Iterable[Result], width: int, *, colour: bool, only_attention: bool
) -> Iterator[str]:
    """A header, then for each result its row, its reason, its FQDN and its TXT value.

    Cells fold and are never cut, so that lines keep within `width` columns; a TXT value
    alone is one line of any length, which the terminal itself wraps.
    """
    rows, hidden = _select(results, only_attention=only_attention)
    if rows:
        yield from _lines(rows, width, colour=colour)
    if hidden:
        yield f"{hidden} rows that need no attention are not shown; --format json shows all\n"


def _select(results: Iterable[Result], *, only_attention: bool) -> tuple[list[Result], int]:
    everything = list(results)
    if not only_attention:
        return everything, 0
    rows = [result for result in everything if result.outcome not in _NEED_NO_ATTENTION]
    return rows, len(everything) - len(rows)


def _lines(rows: Sequence[Result], width: int, *, colour: bool) -> Iterator[str]:
    console = _console(width, colour=colour)
    cells = [_cells(result.registration, result.outcome) for result in rows]
    widths = _column_widths([_HEADER, *cells], width)
    yield _drawn(console, _row([Text(title, "bold") for title in _HEADER], widths))
    for result, texts in zip(rows, cells, strict=True):
        styled = [Text(text) for text in texts]
        styled[2].style = styled[-1].style = _style(result.outcome)
        yield _drawn(console, _row(styled, widths))
        details = list(_details(console, result))
        yield from [*details, "\n"] if details else []


def _details(console: Console, result: Result) -> Iterator[str]:
    """What stands below a row."""
    record, reason = result.registration.record, result.reason
    if reason and reason != result.registration.message:
        yield _drawn(console, _indented(Text(printable(reason), _style(result.outcome))))
    if record is not None:
        yield _drawn(console, _indented(_name_and_type(record)))
        yield f"{printable(record.value)}\n"


def _cells(registration: Registration, outcome: Outcome) -> list[str]:
    answer = " ".join(filter(None, (registration.code, registration.message)))
    texts = (
        registration.sign_domain,
        registration.selector,
        outcome,
        registration.key_len and str(registration.key_len),
        registration.start_date,
        answer,
    )
    return [printable(text) if text else "-" for text in texts]


def _name_and_type(record: DnsRecord) -> Text:
    label, name = ("FQDN  ", "dim"), printable(record.fqdn)
    return Text.assemble(label, name, (f"  {printable(record.type)}", "dim"))


def _style(outcome: Outcome) -> str:
    if outcome in _GOOD:
        return "green"
    return "yellow" if outcome in _WAITING else "red"


def _column_widths(rows: Iterable[Sequence[str]], width: int) -> list[int]:
    """The width of each column: the result's words fold first, then the start, then the rest.

    No other column has more than a third, so that one long domain does not squeeze all rows.
    """
    *others, result = (max(map(cell_len, column)) for column in zip(*rows, strict=True))
    others = [min(wanted, width // 3) for wanted in others]
    room = width - _GAP * len(others)
    if sum(others) > room - _RESULT_LEAST:
        others[-1] = min(others[-1], _START_FOLDED)
    while sum(others) > room - _RESULT_LEAST and max(others) > 1:
        others[others.index(max(others))] -= 1
    return [*others, min(result, max(room - sum(others), 1))]


def _row(cells: Sequence[Text], widths: Sequence[int]) -> Table:
    """One row as a table of its own: between two rows stand lines that keep to no column."""
    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    for width in widths:
        table.add_column(width=width, overflow="fold")
    table.add_row(*cells)
    return table


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _console(width: int, *, colour: bool) -> Console:
    """A console that takes nothing from the environment: the caller has decided."""
    return Console(
        file=StringIO(),
        width=width,
        height=25,
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
    )


def _drawn(console: Console, what: RenderableType) -> str:
    with console.capture() as capture:
        console.print(what, overflow="fold")
    return "".join(f"{line.rstrip(' ')}\n" for line in capture.get().splitlines())
