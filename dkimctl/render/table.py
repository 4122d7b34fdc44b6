"""Table: for people. The TXT value is on its own line below the row, ready to copy."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import ClassVar

from dkimctl.models.registration import GOOD, Outcome, Registration, Result
from dkimctl.render.grid import (
    DIM,
    GREEN,
    INDENT,
    NEED_NO_ATTENTION,
    RED,
    YELLOW,
    Grid,
    hidden_rows,
    wrapped,
)
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more, without_names

_HEADER = ("DOMAIN", "SELECTOR", "OUTCOME", "BITS", "START")
_RESULT = "RESULT"
_MIN_RESULT = len("201 created")
_MIN_START = len("2026-03-01T00:00")  # a start date wraps best before its UTC offset

_WAITING = frozenset({Outcome.PENDING, Outcome.RETIRED, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = GOOD | {Outcome.PENDING}
_NOT_GROUPED = _NEED_NO_ATTENTION | {Outcome.RETIRED}


class TableRenderer(Renderer[Result]):
    """A header, then for each result its row, reason, FQDN and TXT value.

    Cells wrap, so that lines fit the width (at least 40). An FQDN and a TXT value are lines of any
    length, which the terminal wraps.
    """

    _left_out: ClassVar[Set[Outcome]] = _NEED_NO_ATTENTION  # with `only_attention`
    _left_out_ones: ClassVar[tuple[str, str]] = NEED_NO_ATTENTION
    _has_records: ClassVar[bool] = True

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._results: list[Result] = []
        self._hidden = 0
        self._alike = Grouping[str](layout.most_alike)

    def add(self, result: Result) -> str:
        if self._layout.only_attention and result.outcome in self._left_out:
            self._hidden += 1
        elif self._shows(result):
            self._results.append(result)
        return ""

    def end(self) -> Iterator[str]:
        layout = self._layout
        if self._results:
            header = (*_HEADER, _RESULT) if layout.wide else _HEADER
            cells = [_cells(result, wide=layout.wide) for result in self._results]
            min_last = _MIN_RESULT if layout.wide else _MIN_START
            grid = Grid(header, cells, layout.width, min_last=min_last, colour=layout.colour)
            yield from grid.header()
            for result, texts in zip(self._results, cells, strict=True):
                yield self._row(result, texts, grid)
        for kind, count in self._alike.rest():
            yield from wrapped(printable(and_more(count, kind)), layout.width)
        if self._hidden:
            yield from hidden_rows(
                self._hidden, layout.width, which=self._left_out_ones, shown_by=layout.shown_by
            )

    def _shows(self, result: Result) -> bool:
        """Whether the row is shown, or counted since there were enough of its kind."""
        if self._layout.most_alike is None or result.outcome in _NOT_GROUPED:
            return True
        reason = without_names(result.reason, *result.registration.key)
        return self._alike.shows(f"{result.outcome}: {reason}")

    def _row(self, result: Result, texts: tuple[str, ...], grid: Grid) -> str:
        """The row, and the lines below it."""
        style = style_of(result.outcome)
        details = [*self._details(result, grid, style)]
        return "".join([*grid.row(texts, ["", "", style, "", "", style]), *details])

    def _details(self, result: Result, grid: Grid, style: str) -> Iterator[str]:
        registration, reason = result.registration, result.reason
        is_in_row = self._layout.wide and reason == registration.message
        record = registration.record if self._has_records else None
        if reason and not is_in_row:
            yield from grid.below(printable(reason), style)
        if record is not None:
            name_and_type = f"FQDN  {printable(record.fqdn)}  {printable(record.type)}"
            yield f"{INDENT}{grid.styled(name_and_type, DIM)}\n"
            yield f"{printable(record.value)}\n"
        if record is not None or (reason and not is_in_row):
            yield "\n"


def _cells(result: Result, *, wide: bool) -> tuple[str, ...]:
    registration = result.registration
    texts = (
        registration.sign_domain,
        registration.selector,
        result.outcome,
        registration.key_len and str(registration.key_len),
        registration.start_date,
        *([_answer(registration)] if wide else []),
    )
    return tuple(printable(text) if text else "-" for text in texts)


def _answer(registration: Registration) -> str:
    return " ".join(filter(None, (registration.code, registration.message)))


def style_of(outcome: Outcome) -> str:
    """The colour of an outcome, as an ANSI code."""
    if outcome in GOOD:
        return GREEN
    return YELLOW if outcome in _WAITING else RED
