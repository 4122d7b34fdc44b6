"""Checks of DNS as a table, for people: the most urgent first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.dns.verdicts import Check, Urgency, Verdict, is_good
from dkimctl.render.grid import BOLD_RED, DIM, GREEN, RED, YELLOW, Grid, hidden_rows
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more, without_names

_Block = tuple[list[Check], list[tuple[str, int]]]  # the rows to show; the kinds of the rest
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

    `wanted` is the good verdict. The rows that need no attention are the good ones; below the
    table they are counted, unless it is `quiet`.
    """

    def __init__(self, layout: TableLayout, *, wanted: Verdict, quiet: bool = False) -> None:
        self._layout = layout
        self._wanted = wanted
        self._quiet = quiet
        self._checks: list[Check] = []
        self._hidden = 0

    def add(self, check: Check) -> str:
        if self._layout.only_attention and is_good(check.finding.verdict, self._wanted):
            self._hidden += 1
        else:
            self._checks.append(check)
        return ""

    def end(self) -> Iterator[str]:
        checks = sorted(self._checks, key=self._rank)
        blocks = [self._block(same) for _, same in itertools.groupby(checks, self._rank)]
        if blocks:
            yield from self._table(blocks)
        alike = sum(count for _, rest in blocks for _, count in rest)
        hidden = 0 if self._quiet else self._hidden
        if hidden or alike:
            yield from hidden_rows(hidden, self._layout.width, alike=alike)

    def _table(self, blocks: Sequence[_Block]) -> Iterator[str]:
        cells = [_cells(check) for shown, _ in blocks for check in shown]
        layout = self._layout
        grid = Grid(_HEADER, cells, layout.width, min_last=_MIN_URGENCY, colour=layout.colour)
        yield from grid.header()
        remaining = iter(cells)
        for shown, rest in blocks:
            style = ""
            for check in shown:
                style = _style(check, self._wanted)
                yield from grid.row(next(remaining), ["", "", style, "", style])
                yield from _details(check, grid, style)
            for kind, count in rest:
                yield from grid.below(and_more(count, kind), style)

    def _block(self, checks: Iterable[Check]) -> _Block:
        """What to show of checks of the same rank."""
        first, *more = checks
        if self._layout.most_alike is None or is_good(first.finding.verdict, self._wanted):
            return [first, *more], []
        grouping = Grouping[str](self._layout.most_alike)
        shown = [check for check in (first, *more) if grouping.shows(_kind(check))]
        return shown, list(grouping.rest())

    def _rank(self, check: Check) -> tuple[int, bool]:
        return _ORDER.index(check.urgency), is_good(check.finding.verdict, self._wanted)


def _kind(check: Check) -> str:
    """What is said of a check and those that are alike."""
    verdict, reason, _ = check.finding
    urgency = f", {_URGENCIES[check.urgency]}" if check.urgency else ""
    names = without_names(printable(reason), check.sign_domain, check.selector)
    return ": ".join(filter(None, (f"{verdict}{urgency}", names)))


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
