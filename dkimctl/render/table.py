"""Table: for people. The TXT value of a row stands below it, whole, to be copied.

Lines between rows that keep to no column are more than rich's Table can do, so its rows are
laid out here; rich knows how many columns a text takes, and where to cut one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from dkimctl.models import Outcome, Registration, Result
from dkimctl.text import printable

_HEADER = ("DOMAIN", "SELECTOR", "OUTCOME", "BITS", "START", "RESULT")
_GAP = "  "  # between two cells
_INDENT = "  "  # of what stands below a row
_LEAST_WIDTH = 40
_RESULT_LEAST = len("201 created")
_START_FOLDED = len("2026-03-01T00:00")  # a start folds best before its offset

_GOOD = frozenset({Outcome.CREATED, Outcome.EXISTS})
_WAITING = frozenset({Outcome.PENDING, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = _GOOD | {Outcome.PENDING}
_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"  # ECMA-48 section 8.3.117


def render_table(
    results: Iterable[Result], width: int, *, colour: bool, only_attention: bool
) -> Iterator[str]:
    """A header, then for each result its row, its reason, its FQDN and its TXT value.

    Cells fold and are never cut, so that lines keep within `width` columns (at least 40).
    An FQDN and a TXT value are lines of any length, which the terminal itself wraps.
    """
    rows, hidden = _select(results, only_attention=only_attention)
    if rows:
        yield from _Painter(rows, max(width, _LEAST_WIDTH), colour=colour).lines()
    if hidden:
        yield f"{hidden} rows that need no attention are not shown; --format json shows all\n"


def _select(results: Iterable[Result], *, only_attention: bool) -> tuple[list[Result], int]:
    if not only_attention:
        return list(results), 0
    rows, hidden = [], 0
    for result in results:  # of 100,000, those not shown are not kept either
        if result.outcome in _NEED_NO_ATTENTION:
            hidden += 1
        else:
            rows.append(result)
    return rows, hidden


class _Painter:
    def __init__(self, rows: Sequence[Result], width: int, *, colour: bool) -> None:
        self._rows = rows
        self._cells = [_cells(result) for result in rows]
        self._width = width
        self._colour = colour
        self._widths = _column_widths(self._cells, width)

    def lines(self) -> Iterator[str]:
        yield from self._row(_HEADER, [_BOLD] * len(_HEADER))
        for result, cells in zip(self._rows, self._cells, strict=True):
            style = _style(result.outcome)
            yield from self._row(cells, ["", "", style, "", "", style])
            details = list(self._details(result, style))
            yield from [*details, "\n"] if details else []

    def _row(self, cells: Sequence[str], styles: Sequence[str]) -> Iterator[str]:
        for line in zip_longest(*map(_fold, cells, self._widths), fillvalue=""):
            *texts, last = line
            padded = map(_padded, texts, self._widths)
            painted = map(self._painted, (*padded, last), styles)
            yield _GAP.join(painted).rstrip(" ") + "\n"

    def _details(self, result: Result, style: str) -> Iterator[str]:
        """What stands below a row."""
        record, reason = result.registration.record, result.reason
        if reason and reason != result.registration.message:
            yield from self._indented(printable(reason), style)
        if record is not None:
            name_and_type = f"FQDN{_GAP}{printable(record.fqdn)}{_GAP}{printable(record.type)}"
            yield f"{_INDENT}{self._painted(name_and_type, _DIM)}\n"
            yield f"{printable(record.value)}\n"

    def _indented(self, text: str, style: str) -> Iterator[str]:
        for line in _fold(text, self._width - len(_INDENT)):
            yield f"{_INDENT}{self._painted(line, style)}\n"

    def _painted(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and self._colour else text


def _cells(result: Result) -> tuple[str, ...]:
    registration = result.registration
    texts = (
        registration.sign_domain,
        registration.selector,
        result.outcome,
        registration.key_len and str(registration.key_len),
        registration.start_date,
        _answer(registration),
    )
    return tuple(printable(text) if text else "-" for text in texts)


def _answer(registration: Registration) -> str:
    return " ".join(filter(None, (registration.code, registration.message)))


def _style(outcome: Outcome) -> str:
    if outcome in _GOOD:
        return _GREEN
    return _YELLOW if outcome in _WAITING else _RED


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column: the result's words fold first, then the start, then the rest.

    No other column has more than a third, so that one long domain does not squeeze all rows.
    """
    columns = zip(_HEADER, *rows, strict=True)
    *others, result = (max(map(_columns, column)) for column in columns)
    others = [min(wanted, width // 3) for wanted in others]
    room = width - len(_GAP) * len(others)
    if sum(others) > room - _RESULT_LEAST:
        others[-1] = min(others[-1], _START_FOLDED)
    while sum(others) > room - _RESULT_LEAST and max(others) > 1:
        others[others.index(max(others))] -= 1
    return [*others, min(result, max(room - sum(others), 1))]


def _columns(text: str) -> int:
    """How many columns a printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _columns(text))


def _fold(text: str, width: int) -> list[str]:
    """The lines of `text` at `width` columns, between words where that is possible."""
    if _columns(text) <= width:
        return [text]
    from rich.cells import chop_cells

    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _columns(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop_cells(word, width)
    return lines if lines[0] else lines[1:]
