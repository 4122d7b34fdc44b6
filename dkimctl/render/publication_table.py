"""A plan of what to change in DNS as a table, for people: by zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.publishing.items import CHANGING, PlanItem, Step
from dkimctl.render.grid import BOLD, DIM, GREEN, RED, YELLOW, Grid, wrapped
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more, without_names

_HEADER = ("ACTION", "RECORD")
_MIN_RECORD = 24
_STYLES = {Step.CREATE: GREEN, Step.REPLACE: YELLOW, Step.KEEP: DIM}  # the others are red


class PublicationTableRenderer(Renderer[PlanItem]):
    """For each zone its totals, then a row for each change, with the values of a replaced record.

    What stays as it is, is counted, unless the table `shows_kept`.
    """

    def __init__(self, layout: TableLayout, *, shows_kept: bool = False) -> None:
        self._layout = layout
        self._shows_kept = shows_kept
        self._zones: dict[tuple[str, str], list[PlanItem]] = {}
        self._grouping = Grouping[str](layout.most_alike)

    def add(self, item: PlanItem) -> str:
        self._zones.setdefault((item.zone, item.target), []).append(item)
        return ""

    def end(self) -> Iterator[str]:
        if not self._zones:
            return
        shown = [(items, self._shown(items)) for items in self._zones.values()]
        cells = [_cells(item) for _, rows in shown for item in rows]
        layout = self._layout
        grid = Grid(_HEADER, cells, layout.width, min_last=_MIN_RECORD, colour=layout.colour)
        if cells:
            yield from grid.header()
        for items, rows in shown:
            if rows or not layout.only_attention:
                yield from self._zone(items, rows, grid)
        for kind, count in self._grouping.rest():
            yield from wrapped(
                f"{and_more(count, kind)} ({layout.shown_by} shows all)", layout.width
            )

    def _shown(self, items: Iterable[PlanItem]) -> list[PlanItem]:
        """The items that get a row."""
        listed = (item for item in items if self._shows_kept or item.step is not Step.KEEP)
        return [item for item in listed if self._grouping.shows(_kind(item))]

    def _zone(
        self, items: Sequence[PlanItem], rows: Iterable[PlanItem], grid: Grid
    ) -> Iterator[str]:
        for line in wrapped(_heading(items), self._layout.width):
            yield grid.styled(line.removesuffix("\n"), BOLD) + "\n"
        unread = ""
        for item in rows:
            style = _STYLES.get(item.step, RED)
            yield from grid.row(_cells(item), [style, ""])
            if item.step is Step.UNREAD and item.reason == unread:
                continue  # the row above has it
            unread = item.reason
            for text, text_style in _details(item):
                yield from grid.below(text, text_style)


def totals(items: Iterable[PlanItem]) -> str:
    """The number of items of each step; "" without items."""
    counts = Counter(item.step for item in items)
    return ", ".join(f"{step} {counts[step]}" for step in Step if counts[step])


def _heading(items: Sequence[PlanItem]) -> str:
    """The name of a zone, its target, and the totals of its items."""
    zone, target = items[0].zone, items[0].target
    if not target:
        return f"no DNS target: {totals(items)}"
    return f"{printable(zone) or 'unknown zone'} at {printable(target)}: {totals(items)}"


def _details(item: PlanItem) -> Iterator[tuple[str, str]]:
    """The lines below a row, each with its style."""
    if item.reason:
        yield printable(item.reason), RED
    if item.change is None or item.step not in (Step.REPLACE, Step.BLOCKED):
        return
    before = item.change.before
    word = "old" if item.step is Step.REPLACE else "now"
    for value in before.values:
        yield f"{word}, TTL {before.ttl}: {printable(value)}", RED
    if item.step is Step.REPLACE and item.change.value is not None:
        yield f"new, TTL {item.change.ttl}: {printable(item.change.value)}", GREEN


def _cells(item: PlanItem) -> tuple[str, ...]:
    return item.step, printable(item.fqdn)


def _kind(item: PlanItem) -> str:
    """What is said of an item and those that are alike."""
    if item.step in CHANGING or not item.reason:
        return item.step
    return f"{item.step}: {without_names(printable(item.reason), *item.key)}"
