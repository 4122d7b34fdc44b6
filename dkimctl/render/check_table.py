"""Checks of DNS as a table, for people: the most urgent first."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.publication.verdicts import Check, Urgency, Verdict, is_good
from dkimctl.render.grid import BOLD_RED, DIM, GREEN, RED, YELLOW, Grid, hidden_rows
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable

_HEADER = ("DOMAIN", "SELECTOR", "IN DNS", "START", "URGENCY")
_URGENCIES = {
    Urgency.SIGNING: "SIGNING NOW WITHOUT DNS",
    Urgency.PARTLY: "partly in DNS",
    Urgency.SOON: "starts soon",
    Urgency.NONE: "-",
}
_MIN_URGENCY = len("starts soon")
_ORDER = list(Urgency)
_NOT_BAD = (Verdict.DIFFERS, Verdict.NO_ANSWER)


class CheckTableRenderer(Renderer[Check]):
    """A header, then for each check its row, reason and alias.

    `wanted` is the good verdict. With `only_attention` the good rows are left out.
    """

    def __init__(self, width: int, *, wanted: Verdict, colour: bool, only_attention: bool) -> None:
        self._width = width
        self._wanted = wanted
        self._colour = colour
        self._only_attention = only_attention
        self._checks: list[Check] = []
        self._hidden = 0

    def add(self, check: Check) -> str:
        if self._only_attention and is_good(check.finding.verdict, self._wanted):
            self._hidden += 1
        else:
            self._checks.append(check)
        return ""

    def end(self) -> Iterator[str]:
        checks = sorted(self._checks, key=self._rank)
        if checks:
            cells = [_cells(check) for check in checks]
            grid = Grid(_HEADER, cells, self._width, min_last=_MIN_URGENCY, colour=self._colour)
            yield from grid.header()
            for check, texts in zip(checks, cells, strict=True):
                style = _style(check, self._wanted)
                yield from grid.row(texts, ["", "", style, "", style])
                yield from _details(check, grid, style)
        if self._hidden:
            yield from hidden_rows(self._hidden, self._width)

    def _rank(self, check: Check) -> tuple[int, bool]:
        return _ORDER.index(check.urgency), is_good(check.finding.verdict, self._wanted)


def _details(check: Check, grid: Grid, style: str) -> Iterator[str]:
    """The lines below a row."""
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
    if is_good(check.finding.verdict, wanted):
        return GREEN
    return YELLOW if check.finding.verdict in _NOT_BAD else RED
