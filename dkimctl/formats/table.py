"""Tables for people, and text of others in Markdown.

Text that does not fit its column is wrapped, never cut: by textwrap, or by rich if it is not
ASCII. Rows are padded here: a rich.table takes 0.4 ms a row, and a list may have 100,000.
"""

from __future__ import annotations

import operator
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.text import printable

if TYPE_CHECKING:
    from dkimctl.formats.renderer import TableLayout

INDENT = "  "  # of lines below a row
_GAP = "  "  # between two cells
_MIN_WIDTH = 40
_KEPT_SPACE = "\ue000"  # a space at which no line is broken; `printable` leaves none in data


class Style(StrEnum):
    """ANSI codes (ECMA-48 section 8.3.117)."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"
    BOLD_RED = "1;31"


class Row(NamedTuple):
    """The cells of a row, whose empty ones are shown as a dash, and the whole lines below it.

    A style is an ANSI code, or "" for none. Without cells, there are only the lines.
    """

    cells: Sequence[str | None] = ()
    styles: Sequence[str] = ()
    below: Iterable[str] = ()


def table(columns: Sequence[str], rows: Iterable[Row], layout: TableLayout) -> Iterator[str]:
    """The lines of a table: titles in bold, the rows, and the lines below each; "" without rows."""
    rows = list(rows)
    texts = [tuple([printable(cell) if cell else "-" for cell in row.cells]) for row in rows]
    filled = [cells for cells in texts if cells]
    widths = _column_widths([columns, *filled], max(layout.width, _MIN_WIDTH))
    if filled:
        yield from _lines_of_row(columns, [Style.BOLD] * len(columns), widths, layout)
    for row, cells in zip(rows, texts, strict=True):
        if cells:
            yield from _lines_of_row(cells, row.styles, widths, layout)
        yield from row.below


def wrapped(text: str, layout: TableLayout, style: str = "", *, indent: str = "") -> Iterator[str]:
    """The lines of `text`, made printable, that fit the width (at least 40 columns)."""
    for line in wrap(printable(text), max(layout.width, _MIN_WIDTH) - len(indent)):
        yield f"{indent}{styled(line, style, layout)}\n"


def below(text: str, layout: TableLayout, style: str = "") -> Iterator[str]:
    """The lines of `text` below a row; none for ""."""
    return wrapped(text, layout, style, indent=INDENT) if text else iter(())


def styled(text: str, style: str, layout: TableLayout) -> str:
    """`text` with an ANSI code, if there is one and the table is coloured."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and layout.colour else text


def hidden_rows(
    count: int, layout: TableLayout, *, alike: int = 0, why: str = "need no attention"
) -> Iterator[str]:
    """Lines for below a table that say how many rows it leaves out, and what shows all.

    `why` says of `count` rows why; `alike` are like others that are shown.
    """
    left_out = []
    if count == 1:
        verb, _, rest = why.partition(" ")
        left_out.append(f"1 row that {verb}s {rest}")
    elif count:
        left_out.append(f"{count:,} rows that {why}")
    if alike:
        left_out.append(f"{alike:,} {'row' if alike == 1 else 'rows'} like those above")
    are = "is" if count + alike == 1 else "are"
    if left_out:
        text = f"{' and '.join(left_out)} {are} not shown; {layout.shown_by} shows all"
        yield from wrapped(text, layout)


def columns_of(text: str) -> int:
    """The width of a printable text on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded_to(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def lines_of(cells: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """The lines of cells that are wrapped to these widths; "" where a cell has no more."""
    return zip_longest(*map(wrap, cells, widths), fillvalue="")


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns, broken between words where possible.

    A command in backticks that fits stays on one line, to copy it as a whole.
    """
    if columns_of(text) <= width:
        return [text]

    def kept(command: re.Match[str]) -> str:
        fits = columns_of(command[0]) <= width
        return command[0].replace(" ", _KEPT_SPACE) if fits else command[0]

    text = re.sub("`[^`]*`", kept, text)
    if text.isascii():  # five times as fast
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    from rich import get_console
    from rich.text import Text

    lines = Text(text, overflow="fold").wrap(get_console(), width)
    return [line.plain.rstrip().replace(_KEPT_SPACE, " ") for line in lines]


def _lines_of_row(
    cells: Sequence[str], styles: Sequence[str], widths: Sequence[int], layout: TableLayout
) -> Iterator[str]:
    width_of, padded = (len, str.ljust) if all(map(str.isascii, cells)) else (columns_of, padded_to)
    fits = all(map(operator.le, map(width_of, cells), widths))
    for line in [cells] if fits else lines_of(cells, widths):
        *others, last = line
        texts: Iterable[str] = [*map(padded, others, widths), last]
        if layout.colour:
            texts = map(styled, texts, styles or repeat(""), repeat(layout))
        yield _GAP.join(texts).rstrip(" ") + "\n"


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column, so that a row is at most `width` columns wide."""
    columns = list(zip(*rows, strict=True))
    widths = [
        max(map(len if all(map(str.isascii, column)) else columns_of, column)) for column in columns
    ]
    room = width - len(_GAP) * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    # One long domain must not squeeze all rows. Only the last column may be wider than a third.
    widths = [*(min(widest, width // 3) for widest in widths[:-1]), widths[-1]]
    # First, columns of several words lose what they can without a word broken.
    for at, column in enumerate(columns):
        longest_word = max(columns_of(word) for cell in column for word in cell.split(" "))
        excess = max(sum(widths) - room, 0)
        widths[at] = max(min(widths[at], longest_word), widths[at] - excess)
    # Then the widest are narrowed, titles last.
    titles = [max(map(len, title.split(" "))) for title in rows[0]]
    while sum(widths) > room and max(widths) > 1:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > titles[at], widths[at]))
        widths[widest] -= 1
    return widths


def code(text: str) -> str:
    """`text` in Markdown, as a code span (CommonMark 6.1) that nothing in it can end."""
    text = printable(text)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_row(cells: Iterable[str]) -> str:
    """A row of a Markdown table, each of whose cells is code; "" stays empty."""
    return f"| {' | '.join(map(code_cell, cells))} |\n"


def code_cell(text: str) -> str:
    r"""`text` as code in a cell of a Markdown table; "" for none.

    There, `\|` is a pipe even in code (GFM 4.10). After a backslash, parsers disagree on it: a
    space is put between the two.
    """
    parts = re.split(r"(?<=\\)(?=\|)", printable(text)) if text else []
    return " ".join(code(part).replace("|", r"\|") for part in parts)


def fenced(lines: Sequence[str], language: str = "", indent: str = "") -> str:
    """Lines that are printable as a code block (CommonMark 4.5) that nothing in them can end."""
    fence = "`" * max(3, max(map(_longest_run, lines)) + 1)
    return "".join(f"{indent}{line}\n" for line in (f"{fence}{language}", *lines, fence))


def _longest_run(text: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
