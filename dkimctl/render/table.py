"""Table: for people. The TXT value is on its own line below the row, ready to copy."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.models.registration import GOOD, Outcome, Registration, Result
from dkimctl.render.grid import DIM, GREEN, INDENT, RED, YELLOW, Grid, hidden_rows
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR", "OUTCOME", "BITS", "START", "RESULT")
_MIN_RESULT = len("201 created")

_WAITING = frozenset({Outcome.PENDING, Outcome.RETIRED, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = GOOD | {Outcome.PENDING}


class TableRenderer(Renderer[Result]):
    """A header, then for each result its row, reason, FQDN and TXT value.

    Cells wrap, so that lines fit `width` columns (at least 40). An FQDN and a TXT value are
    lines of any length, which the terminal wraps.
    """

    def __init__(self, width: int, *, colour: bool, only_attention: bool) -> None:
        self._width = width
        self._colour = colour
        self._only_attention = only_attention
        self._results: list[Result] = []
        self._hidden = 0

    def add(self, result: Result) -> str:
        if self._only_attention and result.outcome in _NEED_NO_ATTENTION:
            self._hidden += 1
        else:
            self._results.append(result)
        return ""

    def end(self) -> Iterator[str]:
        if self._results:
            cells = [_cells(result) for result in self._results]
            grid = Grid(_HEADER, cells, self._width, min_last=_MIN_RESULT, colour=self._colour)
            yield from grid.header()
            for result, texts in zip(self._results, cells, strict=True):
                style = _style(result.outcome)
                yield from grid.row(texts, ["", "", style, "", "", style])
                details = list(_details(result, grid, style))
                yield from [*details, "\n"] if details else []
        if self._hidden:
            yield from hidden_rows(self._hidden, self._width)


def _details(result: Result, grid: Grid, style: str) -> Iterator[str]:
    """The lines below a row."""
    record, reason = result.registration.record, result.reason
    if reason and reason != result.registration.message:
        yield from grid.below(printable(reason), style)
    if record is not None:
        name_and_type = f"FQDN  {printable(record.fqdn)}  {printable(record.type)}"
        yield f"{INDENT}{grid.styled(name_and_type, DIM)}\n"
        yield f"{printable(record.value)}\n"


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
    if outcome in GOOD:
        return GREEN
    return YELLOW if outcome in _WAITING else RED
