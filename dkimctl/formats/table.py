"""Tables for people, and text of others in Markdown.

Names and dates are never broken, unless one is wider than the whole table. Rows are padded here: a
rich.table takes 0.4 ms a row, and a list may have 100,000.
"""

from __future__ import annotations

import operator
import re
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
UNLIMITED = 10_000  # columns: more than a row has
_SEPARATOR = "\x1f"  # between cells that are kept; `printable` leaves none in them
# Titles of columns with names, and with dates, whose time of day may be left out.
_NAMES = frozenset((
    "DOMAIN", "SELECTOR", "RECORD", "ZONE", "UNDER", "TARGET", "PROFILE"
))  # fmt: skip
_DATES = frozenset(("START", "DUE"))
_TIME_OF_DAY = r"(?<=^\d{4}-\d\d-\d\d)T.*"


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


def table(
    columns: Sequence[str], rows: Iterable[Row], layout: TableLayout, *,
    optional: Sequence[str] = (),
) -> Iterator[str]:  # fmt: skip
    """The lines of a table: titles in bold, the rows, and the lines below each; "" without rows.

    Where the width is missing, dates are shortened first, then the `optional` columns are left out,
    in this order, and then what is left but names is wrapped at words. A name that is too long
    still gets a line of its own. `layout.wide` puts what is left out below its row.
    """
    kept: list[tuple[str, Sequence[str], str]] = []  # a table may have 100,000 rows
    widths = [*map(len, columns)]
    same: dict[Sequence[str], Sequence[str]] = {}
    for row in rows:
        cells = [cell or "-" for cell in row.cells]
        text = "".join(cells)
        is_plain = text.isascii() and text.isprintable()
        if not is_plain:
            cells = [*map(printable, cells)]
        if cells:
            widths = [*map(max, widths, map(len if is_plain else columns_of, cells))]
        text = _SEPARATOR.join(cells)
        looks: Sequence[str] = tuple(row.styles)
        kept.append((text, same.setdefault(looks, looks), "".join(row.below)))
    shown, cut = list(range(len(columns))), frozenset[int]()
    has_room = sum(widths) + len(_GAP) * (len(widths) - 1) <= max(layout.width, _MIN_WIDTH)
    if not has_room:
        texts = (text.split(_SEPARATOR) for text, *_ in kept if text)
        shown, widths, cut = _fitted(columns, texts, layout, optional)
    names = [columns[at] in _NAMES for at in shown]
    has_rows = any(text for text, *_ in kept)
    if has_rows:
        titles = [columns[at] for at in shown]
        yield from _lines_of_row(titles, [Style.BOLD] * len(titles), widths, names, layout)
    left_out = dict.fromkeys(title for at, title in enumerate(columns) if at not in shown)
    padded = _GAP.join(f"%-{width}s" for width in widths)
    for text, styles, lines in kept:
        cells = text.split(_SEPARATOR) if text else []
        if has_room and cells and text.isascii() and not layout.colour:  # the usual long list
            yield (padded % tuple(cells)).rstrip(" ") + "\n"
        elif cells:
            missing = [at for at in range(len(cells)) if at not in shown or (
                at in cut and _day(cells[at]) != cells[at]
            )]  # fmt: skip
            left_out |= dict.fromkeys("times of day" for at in missing if at in shown)
            chosen = [_day(cells[at]) if at in cut else cells[at] for at in shown]
            looks = [styles[at] for at in shown] if styles else ()
            yield from _lines_of_row(chosen, looks, widths, names, layout)
            if layout.wide and missing:
                rest = [f"{columns[at]} {cells[at]}" for at in missing]
                yield from below(", ".join(rest), layout)
        yield lines
    if left_out and has_rows and not layout.wide:
        how = "--wide shows all" if optional else "--format json has all"
        what = f"left out for the width: {', '.join(left_out)}; {how}"
        yield from wrapped(what, layout, Style.DIM)


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


def wrap(text: str, width: int, *, breaks_words: bool = True) -> list[str]:
    """`text` in lines of at most `width` columns, broken between words where possible.

    A command in backticks that fits stays on one line, to copy it as a whole. Without
    `breaks_words`, so do longer ones, and words that are longer than a line.
    """
    if columns_of(text) <= width:
        return [text]
    lines, line = list[str](), ""
    for word in re.findall(r"[^ `]*`[^`]*`[^ `]*|[^ ]+", text):
        is_broken = breaks_words and columns_of(word) > width
        for part in word.split(" ") if is_broken else [word]:
            if line and columns_of(f"{line} {part}") <= width:
                line += f" {part}"
                continue
            lines += [line] if line else []
            line = part
            if is_broken:
                from rich.cells import chop_cells

                *whole, line = chop_cells(part, width) or [""]
                lines += whole
    return [*lines, line]


def _day(text: str) -> str:
    """A date without its time of day; other text as it is."""
    return re.sub(_TIME_OF_DAY, "", text)


def set_apart(
    cells: Sequence[str], widths: Sequence[int], names: Sequence[bool], layout: TableLayout
) -> tuple[list[str], Sequence[str]]:
    """The lines for names that are wider than their columns, and the row without these."""
    long = [at for at, cell in enumerate(cells) if names[at] and columns_of(cell) > widths[at]]
    if not long:
        return [], cells
    room, head = max(layout.width, _MIN_WIDTH), cells[: long[-1] + 1]
    if columns_of(_GAP.join(head)) <= room:
        lines = [_GAP.join(head)]
    else:
        first, *others = head
        lines = wrap(first, room)
        lines += [f"{INDENT}{line}" for name in others for line in wrap(name, room - len(INDENT))]
    return lines, [*[""] * len(head), *cells[len(head) :]]


def _lines_of_row(
    cells: Sequence[str], styles: Sequence[str], widths: Sequence[int], names: Sequence[bool],
    layout: TableLayout,
) -> Iterator[str]:  # fmt: skip
    width_of, padded = (len, str.ljust) if all(map(str.isascii, cells)) else (columns_of, padded_to)
    lines: Iterable[Sequence[str]] = [cells]
    if not all(map(operator.le, map(width_of, cells), widths)):
        apart, cells = set_apart(cells, widths, names, layout)
        yield from (f"{styled(line, styles[0] if styles else '', layout)}\n" for line in apart)
        lines = lines_of(cells, widths) if any(cells) else ()
    for line in lines:
        *others, last = line
        texts: Iterable[str] = [*map(padded, others, widths), last]
        if layout.colour:
            texts = map(styled, texts, styles or repeat(""), repeat(layout))
        yield _GAP.join(texts).rstrip(" ") + "\n"


def _fitted(
    columns: Sequence[str], rows: Iterable[Sequence[str]], layout: TableLayout,
    optional: Sequence[str],
) -> tuple[list[int], list[int], frozenset[int]]:  # fmt: skip
    """The columns of a table that is too narrow for all, their widths, and the dates to cut."""
    width = max(layout.width, _MIN_WIDTH)
    texts: list[set[str]] = [{title} for title in columns]
    for row in rows:
        for known, text in zip(texts, row, strict=True):
            known.add(text)
    sizes = [max(map(columns_of, known)) for known in texts]
    least = [max(columns_of(word) for text in known for word in text.split(" ")) for known in texts]
    dates = frozenset(at for at, title in enumerate(columns) if title in _DATES)
    names = [at for at, title in enumerate(columns) if title in _NAMES]

    def widen(at: int, most: int) -> None:
        """As wide as the longest name of at most so many columns."""
        sizes[at] = max(size for size in map(columns_of, texts[at]) if size <= most)

    for at in names:  # a long one must not squeeze all rows
        widen(at, width // (2 if at == names[0] else 4))
        least[at] = len(columns[at])
    shown = list(range(len(columns)))

    def excess() -> int:
        return sum([sizes[at] for at in shown]) + len(_GAP) * (len(shown) - 1) - width

    cut = dates if excess() > 0 else frozenset[int]()
    for at in cut:
        sizes[at] = max(columns_of(_day(text)) for text in texts[at])
        least[at] = len("YYYY-MM-DD")
    for title in optional:
        if excess() > 0:
            shown.remove(columns.index(title))
    while excess() > 0:  # text is wrapped before names, and words are broken last; dates never
        sizes[max(
            shown, key=lambda at: (sizes[at] > least[at], at not in (*names, *dates), sizes[at])
        )] -= 1  # fmt: skip
    for at in names:  # what is left is for long ones
        widen(at, sizes[at] - excess())
    return shown, [sizes[at] for at in shown], cut


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
