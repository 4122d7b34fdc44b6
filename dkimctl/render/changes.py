"""Changes to DNS, planned and made, in every format."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import assert_never

from dkimctl.publishing.changes import Action
from dkimctl.publishing.plan import CHANGING, PlanItem
from dkimctl.render.data import JsonRenderer
from dkimctl.render.renderer import PublicationFormat, Renderer, TableLayout
from dkimctl.render.table import Row, Style, below, code, fenced, table, wrapped
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import Grouping, and_more, without_names

_STYLES = {
    Action.CREATE: Style.GREEN,
    Action.REPLACE: Style.YELLOW,
    Action.KEEP: Style.DIM,
}  # the others are red


def open_changes(
    fmt: PublicationFormat, layout: TableLayout, *, shows_kept: bool = False
) -> Renderer[PlanItem]:
    """The renderer of a plan to publish in `fmt`.

    `shows_kept` is for a table; of `layout`, Markdown takes `most_alike`.
    """
    match fmt:
        case PublicationFormat.TABLE:
            return ChangesTable(layout, shows_kept=shows_kept)
        case PublicationFormat.JSON:
            return JsonRenderer(item_fields, "count")
        case PublicationFormat.MARKDOWN:
            return ChangesMarkdown(layout.most_alike)
        case _:
            assert_never(fmt)


def item_fields(item: PlanItem) -> dict[str, object]:
    """`item` for JSON."""
    change = item.change
    return {
        "sign_domain": item.registration.sign_domain,
        "selector": item.registration.selector or "",
        "fqdn": item.fqdn,
        "zone": item.zone,
        "target": item.target,
        "action": item.step,
        "reason": item.reason,
        "value": change.value if change else None,
        "ttl": change.ttl if change else None,
        "before": change.before.values if change else (),
        "before_ttl": change.before.ttl if change else None,
        "applied": item.is_applied,
        "in_dns": item.check.finding.verdict if item.check else None,
    }


def _totals(items: Iterable[PlanItem]) -> str:
    """The number of items of each step; "" without items."""
    counts = Counter(item.step for item in items)
    return ", ".join(f"{step} {counts[step]}" for step in Action if counts[step])


class ChangesTable(Renderer[PlanItem]):
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
        layout = self._layout
        rows = itertools.chain.from_iterable(map(self._rows, self._zones.values()))
        yield from table(["ACTION", "RECORD"], rows, layout)
        for kind, count in self._grouping.rest():
            yield from wrapped(f"{and_more(count, kind)} ({layout.shown_by} shows all)", layout)

    def _rows(self, items: list[PlanItem]) -> Iterator[Row]:
        """The heading and the changes of a zone."""
        listed = (item for item in items if self._shows_kept or item.step is not Action.KEEP)
        shown = [item for item in listed if self._grouping.shows(_kind(item))]
        if not shown and self._layout.only_attention:
            return
        zone, target = items[0].zone, items[0].target
        place = f"{zone or 'unknown zone'} at {target}" if target else "no DNS target"
        yield Row(below=wrapped(f"{place}: {_totals(items)}", self._layout, Style.BOLD))
        unread = ""
        for item in shown:
            # Of names that could not be read for the same reason, the first row has it.
            is_said = item.step is Action.UNREAD and item.reason == unread
            unread = item.reason
            lines = [] if is_said else [*self._details(item)]
            yield Row((item.step, item.fqdn), [_STYLES.get(item.step, Style.RED), ""], lines)

    def _details(self, item: PlanItem) -> Iterator[str]:
        """The lines below a row."""
        yield from below(item.reason, self._layout, Style.RED)
        change = item.change
        if change is None or item.step not in (Action.REPLACE, Action.BLOCKED):
            return
        word = "old" if item.step is Action.REPLACE else "now"
        for value in change.before.values:
            yield from below(f"{word}, TTL {change.before.ttl}: {value}", self._layout, Style.RED)
        if item.step is Action.REPLACE and change.value is not None:
            yield from below(f"new, TTL {change.ttl}: {change.value}", self._layout, Style.GREEN)


def _kind(item: PlanItem) -> str:
    """What is said of an item and those that are alike."""
    if item.step in CHANGING or not item.reason:
        return item.step
    return f"{item.step}: {without_names(printable(item.reason), *item.key)}"


class ChangesMarkdown(Renderer[PlanItem]):
    """A heading with totals; for each zone, a list of its changes with the old and new values.

    All text of others stands in code, on one line: nothing in it acts as Markdown or HTML. Of each
    step, `most_alike` are listed, and the rest counted: a comment at GitHub may have 65,536
    characters. None: all are.
    """

    def __init__(self, most_alike: int | None = None) -> None:
        self._items: list[PlanItem] = []
        self._grouping = Grouping[Action](most_alike)

    def add(self, item: PlanItem) -> str:
        self._items.append(item)
        return ""

    def end(self) -> Iterator[str]:
        yield f"### DKIM records: {_totals(self._items) or 'nothing to do'}\n"
        for (zone, target), group in itertools.groupby(
            self._items, lambda item: (item.zone, item.target)
        ):
            items = list(group)
            listed = (item for item in items if item.step is not Action.KEEP)
            shown = [item for item in listed if self._grouping.shows(item.step)]
            if shown:
                named = code(zone) if zone else "Unknown zone"
                place = f"{named} at {code(target)}" if target else "No DNS target"
                yield f"\n#### {place}: {_totals(items)}\n\n"
            for item in shown:
                yield from _entry(item)
        for step, count in self._grouping.rest():
            yield f"\n{and_more(count, step)} (`--verbose` lists all)\n"


def _entry(item: PlanItem) -> Iterator[str]:
    state = ", done" if item.is_applied else ""
    in_dns = f", in DNS: {item.check.finding.verdict}" if item.check else ""
    yield f"- **{item.step}** {code(item.fqdn)}{state}{in_dns}\n"
    if item.reason:
        yield f"  {code(item.reason)}\n"
    if item.change is None:
        return
    is_blocked = item.step is Action.BLOCKED
    lines = [f"{' ' if is_blocked else '-'} {printable(old)}" for old in item.change.before.values]
    if not is_blocked and item.change.value is not None:
        lines.append(f"+ {printable(item.change.value)}")
    if lines:
        yield fenced(lines, "diff", indent="  ")
