"""Rows of cells in columns, for people: what does not fit is folded, never cut.

Lines between rows that keep to no column are more than rich's Table can do, so rows are
laid out here; rich knows how many columns a text takes, and where to cut one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"  # ECMA-48 section 8.3.117
BOLD_RED = "1;31"

_GAP = "  "  # between two cells
INDENT = "  "  # of what stands below a row
_LEAST_WIDTH = 40
_START_FOLDED = len("2026-03-01T00:00")  # a start folds best before its offset


class Grid:
    """Lays out rows below a header, within `width` columns (at least 40).

    The last column's words fold first, down to `least` columns; then the one before it, a date;
    then the rest. `colour` adds ANSI codes.
    """

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        width: int,
        *,
        least: int,
        colour: bool,
    ) -> None:
        self._header = header
        self._width = max(width, _LEAST_WIDTH)
        self._widths = _column_widths([header, *rows], self._width, least)
        self._colour = colour

    def header(self) -> Iterator[str]:
        return self.row(self._header, [BOLD] * len(self._header))

    def row(self, cells: Sequence[str], styles: Sequence[str]) -> Iterator[str]:
        """The lines of one row; a style is an ANSI code, or ""."""
        for line in zip_longest(*map(_fold, cells, self._widths), fillvalue=""):
            *texts, last = line
            padded = map(_padded, texts, self._widths)
            painted = map(self.painted, (*padded, last), styles)
            yield _GAP.join(painted).rstrip(" ") + "\n"

    def below(self, text: str, style: str) -> Iterator[str]:
        """Lines of words below a row."""
        for line in _fold(text, self._width - len(INDENT)):
            yield f"{INDENT}{self.painted(line, style)}\n"

    def painted(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and self._colour else text


def hidden_rows(count: int, width: int) -> Iterator[str]:
    """Lines below a table that say how many rows are left out."""
    text = f"{count} rows that need no attention are not shown; --format json shows all"
    return (f"{line}\n" for line in _fold(text, max(width, _LEAST_WIDTH)))


def _column_widths(rows: Sequence[Sequence[str]], width: int, least: int) -> list[int]:
    """The width of each column.

    None but the last has more than a third, so that one long domain does not squeeze all rows.
    """
    *others, last = (max(map(_columns, column)) for column in zip(*rows, strict=True))
    others = [min(wanted, width // 3) for wanted in others]
    room = width - len(_GAP) * len(others)
    if sum(others) > room - least:
        others[-1] = min(others[-1], _START_FOLDED)
    while sum(others) > room - least and max(others) > 1:
        others[others.index(max(others))] -= 1
    return [*others, min(last, max(room - sum(others), 1))]


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
