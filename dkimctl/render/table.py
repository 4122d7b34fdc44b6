"""Table: for people. The TXT value of a row stands below it, whole, to be copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import Outcome, Registration, Result
from dkimctl.render.columns import DIM, GREEN, INDENT, RED, YELLOW, Grid, words
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR", "OUTCOME", "BITS", "START", "RESULT")
_RESULT_LEAST = len("201 created")

_GOOD = frozenset({Outcome.CREATED, Outcome.EXISTS})
_WAITING = frozenset({Outcome.PENDING, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = _GOOD | {Outcome.PENDING}


def render_table(
    results: Iterable[Result], width: int, *, colour: bool, only_attention: bool
) -> Iterator[str]:
    """A header, then for each result its row, its reason, its FQDN and its TXT value.

    Cells fold and are never cut, so that lines keep within `width` columns (at least 40).
    An FQDN and a TXT value are lines of any length, which the terminal itself wraps.
    """
    rows, hidden = _select(results, only_attention=only_attention)
    if rows:
        cells = [_cells(result) for result in rows]
        grid = Grid(_HEADER, cells, width, least=_RESULT_LEAST, colour=colour)
        yield from grid.header()
        for result, texts in zip(rows, cells, strict=True):
            style = _style(result.outcome)
            yield from grid.row(texts, ["", "", style, "", "", style])
            details = list(_details(result, grid, style))
            yield from [*details, "\n"] if details else []
    if hidden:
        text = f"{hidden} rows that need no attention are not shown; --format json shows all"
        yield from words(text, width)


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


def _details(result: Result, grid: Grid, style: str) -> Iterator[str]:
    """What stands below a row."""
    record, reason = result.registration.record, result.reason
    if reason and reason != result.registration.message:
        yield from grid.below(printable(reason), style)
    if record is not None:
        name_and_type = f"FQDN  {printable(record.fqdn)}  {printable(record.type)}"
        yield f"{INDENT}{grid.painted(name_and_type, DIM)}\n"
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
    if outcome in _GOOD:
        return GREEN
    return YELLOW if outcome in _WAITING else RED
