"""Checks of DNS as a table, for people: what does harm now stands first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.publication.verdicts import Check, Urgency, Verdict
from dkimctl.render.columns import BOLD_RED, DIM, GREEN, RED, YELLOW, Grid, words
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR", "IN DNS", "START", "URGENCY")
_URGENCIES = {
    Urgency.SIGNING: "SIGNING NOW WITHOUT DNS",
    Urgency.SOON: "starts soon",
    Urgency.NONE: "-",
}
_LEAST = len("starts soon")
_ORDER = list(Urgency)


def render_check_table(
    checks: Iterable[Check], width: int, *, wanted: Verdict, colour: bool, only_attention: bool
) -> Iterator[str]:
    """A header, then for each check its row, the most urgent first, and what is to be said of it.

    `wanted` is the verdict that is good. With `only_attention` rows that have it are left out.
    """
    rows, hidden = [], 0
    for check in checks:
        if only_attention and check.finding.verdict is wanted:
            hidden += 1
        else:
            rows.append(check)
    rows.sort(key=lambda check: (_ORDER.index(check.urgency), check.finding.verdict is wanted))
    if rows:
        cells = [_cells(check) for check in rows]
        grid = Grid(_HEADER, cells, width, least=_LEAST, colour=colour)
        yield from grid.header()
        for check, texts in zip(rows, cells, strict=True):
            style = _style(check, wanted)
            yield from grid.row(texts, ["", "", style, "", style])
            yield from _details(check, grid, style)
    if hidden:
        text = f"{hidden} rows that need no attention are not shown; --format json shows all"
        yield from words(text, width)


def _details(check: Check, grid: Grid, style: str) -> Iterator[str]:
    """What stands below a row: each line is of one thing."""
    if check.finding.reason:
        yield from grid.below(printable(check.finding.reason), style)
    if check.alias:
        yield from grid.below(
            f"{printable(check.fqdn)} is an alias of {printable(check.alias)}", DIM
        )


def _cells(check: Check) -> tuple[str, ...]:
    texts = (
        check.sign_domain,
        check.selector,
        check.finding.verdict,
        check.start_date or "",
        _URGENCIES[check.urgency],
    )
    return tuple(printable(text) if text else "-" for text in texts)


def _style(check: Check, wanted: Verdict) -> str:
    if check.urgency is Urgency.SIGNING:
        return BOLD_RED
    if check.finding.verdict is wanted:
        return GREEN
    return YELLOW if check.finding.verdict is Verdict.NO_ANSWER else RED
