"""Tables for people: text that does not fit its column is wrapped, never cut.

rich's Table cannot have lines between rows that span all columns, so rows are laid out here;
rich only tells how wide a text is, and where to break it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"  # ECMA-48 section 8.3.117
BOLD_RED = "1;31"

_GAP = "  "  # between two cells
INDENT = "  "  # of lines below a row
_MIN_WIDTH = 40
_WRAPPED_START = len("2026-03-01T00:00")  # a start date wraps best before its UTC offset


class Grid:
    """Lays out rows below a header, at most `width` columns wide (at least 40).

    The cells of `wordy` columns wrap first, between words; then the last one, down to `min_last`
    columns; then the one before it, a date; then the rest. `colour` adds ANSI codes.
    """

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        width: int,
        *,
        min_last: int,
        colour: bool,
        wordy: Sequence[int] = (),
    ) -> None:
        self._header = header
        self._width = max(width, _MIN_WIDTH)
        self._widths = _column_widths([header, *rows], self._width, min_last, wordy)
        self._colour = colour

    def header(self) -> Iterator[str]:
        return self.row(self._header, [BOLD] * len(self._header))

    def row(self, cells: Sequence[str], styles: Sequence[str]) -> Iterator[str]:
        """The lines of one row. A style is an ANSI code, or "" for none."""
        for line in lines_of(cells, self._widths):
            yield self._line(line, styles)

    def below(self, text: str, style: str) -> Iterator[str]:
        """The lines of `text` below a row."""
        for line in _wrap(text, self._width - len(INDENT)):
            yield f"{INDENT}{self.styled(line, style)}\n"

    def _line(self, texts: Sequence[str], styles: Sequence[str]) -> str:
        *others, last = texts
        padded = [*map(padded_to, others, self._widths), last]
        if self._colour:
            padded = [*map(self.styled, padded, styles)]
        return _GAP.join(padded).rstrip(" ") + "\n"

    def styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text


def styled(text: str, style: str) -> str:
    """`text` with an ANSI code, if there is one."""
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


NEED_NO_ATTENTION = ("needs no attention", "need no attention")


def hidden_rows(
    count: int,
    width: int,
    *,
    alike: int = 0,
    which: tuple[str, str] = NEED_NO_ATTENTION,
    shown_by: str = "--format table",
) -> Iterator[str]:
    """Lines for below a table that say how many rows it leaves out, and what shows all.

    `which` says of `count` rows, of one or of several, why; `alike` are like others that are shown.
    """
    left_out = []
    if count:
        one, several = which
        left_out.append(f"1 row that {one}" if count == 1 else f"{count:,} rows that {several}")
    if alike:
        left_out.append(f"{alike:,} {'row' if alike == 1 else 'rows'} like those above")
    are = "is" if count + alike == 1 else "are"
    return wrapped(f"{' and '.join(left_out)} {are} not shown; {shown_by} shows all", width)


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of `text`, at most `width` columns wide (at least 40)."""
    return (f"{line}\n" for line in _wrap(text, max(width, _MIN_WIDTH)))


def lines_of(cells: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """The lines of cells that are wrapped to these widths; "" where a cell has no more."""
    if all(map(_fits, cells, widths)):  # almost always
        yield cells
    else:
        yield from zip_longest(*map(_wrap, cells, widths), fillvalue="")


def _column_widths(
    rows: Sequence[Sequence[str]], width: int, min_last: int, wordy: Sequence[int]
) -> list[int]:
    """The width of each column.

    Only the last may be wider than a third, so that one long domain does not squeeze all rows.
    """
    *others, last = (max(map(columns_of, column)) for column in zip(*rows, strict=True))
    min_last = min(min_last, last)
    others = [min(widest, width // 3) for widest in others]
    available = width - len(_GAP) * len(others)
    for at in wordy:
        longest_word = max(columns_of(word) for row in rows for word in row[at].split())
        excess = max(0, sum(others) - (available - min_last))
        others[at] = max(min(others[at], longest_word), others[at] - excess)
    if sum(others) > available - min_last:
        others[-1] = min(others[-1], _WRAPPED_START)
    while sum(others) > available - min_last and max(others) > 1:
        others[others.index(max(others))] -= 1
    return [*others, min(last, max(available - sum(others), 1))]


def columns_of(text: str) -> int:
    """The width of a printable text on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fits(text: str, width: int) -> bool:
    return columns_of(text) <= width


def padded_to(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns, broken between words where possible."""
    if _fits(text, width):
        return [text]
    lines = [""]
    for word in _words(text, width):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _fits(longer, width):
            lines[-1] = longer
        else:
            lines += _chopped(word, width)
    return lines if lines[0] else lines[1:]


def _chopped(word: str, width: int) -> Iterator[str]:
    """The pieces of a word that is too long; a domain is broken after one of its dots."""
    from rich.cells import chop_cells

    start = 0
    while start < len(word):
        # A window, since rich would chop all that is left for each piece.
        piece = chop_cells(word[start : start + 2 * width], width)[0]
        if not piece:  # a character is wider than the column
            yield from chop_cells(word[start:], width)
            return
        dot = piece.rfind(".") + 1
        is_last = start + len(piece) == len(word)
        end = dot if dot > len(piece) // 2 and not is_last else len(piece)
        yield piece[:end]
        start += end


def _words(text: str, width: int) -> list[str]:
    """What spaces separate; a command in backticks that fits is one word, to copy it as a whole."""
    pieces = text.split("`")
    for at in range(1, len(pieces) - 1, 2):
        if columns_of(pieces[at]) <= width - len("``"):
            pieces[at] = pieces[at].replace(" ", "\0")
    return [word.replace("\0", " ") for word in "`".join(pieces).split(" ")]
