"""The lives of keys as bars, for people: one row for each key, and today as a line.

Each phase has a character of its own, so it reads without colour, and in ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from dkimctl.models.key_status import KeyStatus
from dkimctl.render.grid import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    columns_of,
    lines_of,
    padded_to,
    styled,
    wrapped,
)
from dkimctl.render.phases import spans_of
from dkimctl.render.renderer import TableLayout
from dkimctl.render.stage_rows import StageRows
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR")
_TODAY = "|"
_MIN_WIDTH = 40
_GAP = "  "  # between cells
_MIN_SPAN = timedelta(days=1)
_LONGEST_PAST, _LONGEST_FUTURE = timedelta(days=730), timedelta(days=365)  # that are drawn


# The character and the colour of each phase.
_LOOKS = {
    "registered": (".", DIM),
    "published": ("o", CYAN),
    "signing": ("#", GREEN),
    "grace period": ("~", YELLOW),
    "retired": ("x", RED),
}
# The characters of a bar, as far as they are alike; and one that the legend explains.
_RUN, _ALONE = r"([.o#~x|])\1*", r"(?<!\S)([.o#~x|])(?!\S)"
_STYLES = {_TODAY: BOLD} | dict(_LOOKS.values())


class TimelineRenderer(StageRows):
    """A scale, the keys in the order in which they are added, and what the characters mean."""

    def __init__(self, layout: TableLayout, now: datetime) -> None:
        super().__init__(layout)
        self._now = now

    def _table(self, statuses: Sequence[KeyStatus]) -> Iterator[str]:
        width = max(self._layout.width, _MIN_WIDTH)
        rows = [
            (printable(status.sign_domain), printable(status.selector or "-"))
            for status in statuses
        ]
        widths = [
            min(max(map(columns_of, cells)), width // 3)
            for cells in zip(_HEADER, *rows, strict=True)
        ]
        scale = _Scale(statuses, self._now, width - sum(widths) - len(widths) * len(_GAP))
        yield from self._row(_HEADER, widths, scale.header(), BOLD)
        for cells, status in zip(rows, statuses, strict=True):
            yield from self._row(cells, widths, scale.bar(status))
        yield "\n"
        legend = "  ".join(f"{character} {name}" for name, (character, _) in _LOOKS.items())
        for line in wrapped(f"{legend}  {_TODAY} today", width):
            yield self._coloured(line, _ALONE)

    def _row(
        self, cells: Sequence[str], widths: Sequence[int], bar: str, style: str = ""
    ) -> Iterator[str]:
        """The lines of a row; its bar is on the first."""
        for line in lines_of(cells, widths):
            names = _GAP.join(map(padded_to, line, widths))
            if self._layout.colour:
                names = styled(names, style)
            yield f"{names}{_GAP}{self._coloured(bar)}".rstrip() + "\n"
            bar = ""

    def _coloured(self, text: str, pattern: str = _RUN) -> str:
        """The text with the characters of each phase in its colour."""
        if not self._layout.colour:
            return text
        return re.sub(pattern, lambda run: styled(run[0], _STYLES[run[1]]), text)


class _Scale:
    """Which column of a bar a time is in; times before the first or after the last are in those."""

    def __init__(self, statuses: Sequence[KeyStatus], now: datetime, columns: int) -> None:
        times = [time for status in statuses for time in (*status.dates, status.due) if time]
        self.columns = columns
        self._now = now
        self._first = max(min([now, *times]), now - _LONGEST_PAST)
        self._last = min(max([now, *times]), now + _LONGEST_FUTURE)
        self._span = max(self._last - self._first, _MIN_SPAN)
        self._today = self._column(now)

    def header(self) -> str:
        """The first and the last date."""
        first, last = str(self._first.date()), str(self._last.date())
        if len(first) + len(last) >= self.columns:
            return first[: self.columns]
        return first + last.rjust(self.columns - len(first))

    def bar(self, status: KeyStatus) -> str:
        cells = [" "] * self.columns
        for phase, begins, ends in spans_of(status, self._now):
            begin = self._column(begins)
            end = max(begin + 1, self._column(ends))
            cells[begin:end] = _LOOKS[phase.name][0] * (end - begin)
        cells[self._today] = _TODAY
        return "".join(cells)

    def _column(self, time: datetime) -> int:
        column = int((time - self._first) / self._span * self.columns)
        return max(0, min(column, self.columns - 1))
