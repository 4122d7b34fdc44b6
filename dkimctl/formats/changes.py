"""Changes to DNS, planned and made, in every format."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.formats.data import JsonRenderer
from dkimctl.formats.renderer import PublicationFormat, TableLayout, render_all
from dkimctl.formats.table import Row, Style, below, code, fenced, table, wrapped
from dkimctl.publishing.plan import CHANGING, Action, Change
from dkimctl.text import Grouping, and_more, printable, readable, without_names

# The others are red.
_STYLES = {Action.CREATE: Style.GREEN, Action.REPLACE: Style.YELLOW, Action.KEEP: Style.DIM}


def render_changes(
    items: Sequence[Change], fmt: PublicationFormat, layout: TableLayout, *, shows_kept: bool
) -> Iterator[str]:
    """A plan to publish in `fmt`; of `layout`, Markdown takes `most_alike`.

    `shows_kept`: a table lists what stays as it is, too, and not only counts it.
    """
    if fmt is PublicationFormat.JSON:
        return render_all(JsonRenderer(_item_fields, "count"), items)
    if fmt is PublicationFormat.MARKDOWN:
        return _markdown(items, layout.most_alike)
    return _table(items, layout, shows_kept=shows_kept)


def _item_fields(item: Change) -> dict[str, object]:
    return {
        "sign_domain": item.registration.sign_domain,
        "selector": item.registration.selector or "",
        "fqdn": item.fqdn,
        "alias_end": item.alias_end,
        "zone": item.zone,
        "target": item.place[1],
        "action": item.action,
        "reason": item.reason,
        "add_first": item.add_first,
        "value": item.value,
        "ttl": item.ttl,
        "before": item.before.values,
        "before_ttl": item.before.ttl,
        "applied": item.is_applied,
        "in_dns": item.check.finding.verdict if item.check else None,
    }


def _totals(items: Iterable[Change]) -> str:
    """The number of items of each step; "" without items."""
    counts = Counter(item.action for item in items)
    return ", ".join(f"{step} {counts[step]}" for step in Action if counts[step])


def _table(items: Sequence[Change], layout: TableLayout, *, shows_kept: bool) -> Iterator[str]:
    """For each zone its totals, then a row for each change, with the old and new values."""
    zones: dict[tuple[str, str], list[Change]] = {}
    for item in items:
        zones.setdefault(item.place, []).append(item)
    grouping = Grouping[str](layout.most_alike)

    def rows_of(items: Sequence[Change]) -> Iterator[Row]:
        listed = (item for item in items if shows_kept or item.action is not Action.KEEP)
        shown = []
        for item in listed:
            kind: str = item.action
            if item.action not in CHANGING and item.reason:
                kind = f"{kind}: {without_names(printable(item.reason), *item.key)}"
            if grouping.shows(kind):
                shown.append(item)
        if not shown and layout.only_attention:
            return
        zone, target = items[0].place
        named = readable(zone, layout.encoding) or "unknown zone"
        place = f"{named} at {target}" if target else "no DNS target"
        yield Row(below=wrapped(f"{place}: {_totals(items)}", layout, Style.BOLD))
        unread = ""
        for item in shown:
            # Of names that could not be read for the same reason, the first row has it.
            is_said = item.action is Action.UNREAD and item.reason == unread
            unread = item.reason
            lines = [] if is_said else [*_details(item, layout)]
            name = readable(item.fqdn, layout.encoding)
            yield Row((item.action, name), [_STYLES.get(item.action, Style.RED), ""], lines)

    rows = itertools.chain.from_iterable(map(rows_of, zones.values()))
    yield from table(["ACTION", "RECORD"], rows, layout)
    for kind, count in grouping.rest():
        yield from wrapped(f"{and_more(count, kind)} ({layout.shown_by} shows all)", layout)


def _details(item: Change, layout: TableLayout) -> Iterator[str]:
    """The lines below a row."""
    yield from below(item.reason, layout, Style.DIM if item.action in CHANGING else Style.RED)
    # Each on one line, however long, to be copied.
    yield from (f"{printable(line)}\n" for line in item.add_first)
    if item.action not in (Action.REPLACE, Action.BLOCKED):
        return
    word = "old" if item.action is Action.REPLACE else "now"
    for value in item.before.values:
        yield from below(f"{word}, TTL {item.before.ttl}: {value}", layout, Style.RED)
    if item.action is Action.REPLACE:
        yield from below(f"new, TTL {item.ttl}: {item.value}", layout, Style.GREEN)


def _markdown(items: Sequence[Change], most_alike: int | None) -> Iterator[str]:
    """A heading with totals; for each zone, a list of its changes with the old and new values.

    All text of others stands in code, on one line: nothing in it acts as Markdown or HTML. Of each
    step, `most_alike` are listed: a comment at GitHub may have 65,536 characters.
    """
    grouping = Grouping[Action](most_alike)
    yield f"### DKIM records: {_totals(items) or 'nothing to do'}\n"
    for (zone, target), group in itertools.groupby(items, lambda item: item.place):
        of_zone = list(group)
        changed = (item for item in of_zone if item.action is not Action.KEEP)
        if shown := [item for item in changed if grouping.shows(item.action)]:
            named = code(zone) if zone else "Unknown zone"
            place = f"{named} at {code(target)}" if target else "No DNS target"
            yield f"\n#### {place}: {_totals(of_zone)}\n\n"
        for item in shown:
            yield from _entry(item)
    for step, count in grouping.rest():
        yield f"\n{and_more(count, step)} (`--verbose` lists all)\n"


def _entry(item: Change) -> Iterator[str]:
    state = ", done" if item.is_applied else ""
    in_dns = f", in DNS: {item.check.finding.verdict}" if item.check else ""
    yield f"- **{item.action}** {code(item.fqdn)}{state}{in_dns}\n"
    if item.reason:
        yield f"  {code(item.reason)}\n"
    is_blocked = item.action is Action.BLOCKED
    if item.add_first:
        yield fenced([*map(printable, item.add_first)], indent="  ")
    lines = [f"{' ' if is_blocked else '-'} {printable(old)}" for old in item.before.values]
    if not is_blocked and item.value is not None:
        lines.append(f"+ {printable(item.value)}")
    if lines:
        yield fenced(lines, "diff", indent="  ")
