"""The overview as text, for people: what fits one screen of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from dkimctl.dns.verdicts import Urgency
from dkimctl.models.key_status import KeyStatus
from dkimctl.models.listed_key import ListedKey
from dkimctl.models.overview import MONTH, WEEK, AgeBand, Event, Overview
from dkimctl.render.grid import BOLD, BOLD_RED, CYAN, DIM, YELLOW, columns_of, styled, wrapped
from dkimctl.render.key_list_table import short_time
from dkimctl.render.renderer import TableLayout, render_all
from dkimctl.render.timeline import TimelineRenderer
from dkimctl.text.escaping import printable
from dkimctl.text.idn import readable

_MOST_DATES = 7  # lines of a week or month
_FEWEST_KEYS, _MOST_KEYS = 3, 30  # of the timeline
_AROUND_TIMELINE = 8  # lines: title, scale, legend, what is left out, and the prompt
_LONGEST_BAR = 40
_WHY = "`dkimctl rotate status` says why"
_ALL = "`dkimctl rotate status --timeline` draws all"
_URGENCIES = {
    Urgency.SIGNING: "signing now without DNS",
    Urgency.PARTLY: "signing now, partly in DNS",
    Urgency.SOON: "signing starts soon, not in DNS",
}


GroupT = TypeVar("GroupT")


class Screen(NamedTuple):
    """What the text is made for; `height` is in lines."""

    layout: TableLayout
    height: int
    complete: Callable[[str], str] = str  # adds the options of the profile to a command


def overview_text(overview: Overview, screen: Screen) -> Iterator[str]:
    """The sections, with an empty line between two; the timeline takes the lines that are left."""
    layout = screen.layout
    lines = [*_head(overview, layout), *_urgent(overview, screen)]
    lines += _section("This week", overview.week, overview.now + WEEK, overview.now, layout)
    lines += _section("This month", overview.month, overview.now + MONTH, overview.now, layout)
    lines += _ages(overview.ages, layout)
    yield from lines
    left = screen.height - len(lines) - _AROUND_TIMELINE
    yield from _timeline(overview, screen, min(max(left, _FEWEST_KEYS), _MOST_KEYS))


def _head(overview: Overview, layout: TableLayout) -> Iterator[str]:
    title = f"{_counted(overview.domains, 'domain')}, {_counted(overview.keys, 'key')}"
    yield _titled(title, f"on {overview.now:%Y-%m-%d}", layout)
    facts = {"Stages": _counts(overview.stages), "In DNS": _counts(overview.states)}
    if overview.states and overview.looked_at is not None:
        facts["In DNS"] += f"; last look {short_time(overview.now - overview.looked_at)} ago"
    bits = {f"{length} bits": count for length, count in sorted(overview.key_lengths.items())}
    facts["Keys"] = _counts(Counter(bits))
    for name, text in facts.items():
        if text:
            yield from wrapped(f"{name:<7} {text}", layout.width)


def _urgent(overview: Overview, screen: Screen) -> Iterator[str]:
    layout = screen.layout
    if overview.urgent:
        yield from _title("Urgent", "", layout)
        rows = grouped((_URGENCIES[Urgency(key.status.urgency)], key) for key in overview.urgent)
        yield from _rows([Row("", what, keys) for what, keys in rows.items()], BOLD_RED, layout)
    if overview.undecided:
        yield from _title("For you to decide", screen.complete(_WHY), layout)
        rows = grouped((str(key.status.action), key) for key in overview.undecided)
        yield from _rows([Row("", what, keys) for what, keys in rows.items()], YELLOW, layout)


def _section(
    title: str, events: Sequence[Event], until: datetime, now: datetime, layout: TableLayout
) -> Iterator[str]:
    """A line for each day and kind of event; for each kind alone if those are many."""
    yield from _title(title, f"until {until:%Y-%m-%d}", layout)
    overdue = [event for event in events if event.at < now]
    rows = [Row("overdue", what, keys) for what, keys in _by_kind(overdue).items()]
    yield from _rows(rows, BOLD_RED, layout)
    coming = [event for event in events if event.at >= now]
    by_day = grouped(((str(event.at.date()), event.what), event.key) for event in coming)
    rows = [Row(day, what, keys) for (day, what), keys in by_day.items()]
    if len(rows) > _MOST_DATES:
        firsts = {event.what: str(event.at.date()) for event in reversed(coming)}
        by_kind = _by_kind(coming)
        rows = [Row(f"from {firsts[what]}", what, keys) for what, keys in by_kind.items()]
    yield from _rows(rows, CYAN, layout)
    if not events:
        yield "  nothing\n"


class Row(NamedTuple):
    """A line of a section, about several keys; `day` may be ""."""

    day: str
    what: str
    keys: Sequence[ListedKey]


def _rows(rows: Sequence[Row], style: str, layout: TableLayout) -> Iterator[str]:
    """Columns; of the names as many as fit."""
    days = max((len(row.day) for row in rows), default=0)
    whats = max((len(row.what) for row in rows), default=0)
    for day, what, keys in rows:
        head = f"  {day:<{days}}  " if days else "  "
        count = _counted(len(keys), "key")
        left = layout.width - len(head) - whats - len(count) - len("    ")
        names = _that_fit([_name(key, layout.encoding) for key in keys], left)
        shown = styled(f"{what:<{whats}}", style) if layout.colour else f"{what:<{whats}}"
        yield f"{head}{shown}  {count}  {names}".rstrip() + "\n"


def _that_fit(names: Sequence[str], width: int) -> str:
    """The first names, and how many more."""
    fitting: list[str] = []
    for at, name in enumerate(names):
        more = f" and {len(names) - at - 1} more" if at + 1 < len(names) else ""
        if columns_of(", ".join([*fitting, name]) + more) > width:
            break
        fitting.append(name)
    rest = len(names) - len(fitting)
    if not fitting:
        return ""
    return ", ".join(fitting) + (f" and {rest} more" if rest else "")


def _by_kind(events: Iterable[Event]) -> dict[str, list[ListedKey]]:
    return grouped((event.what, event.key) for event in events)


def grouped(pairs: Iterable[tuple[GroupT, ListedKey]]) -> dict[GroupT, list[ListedKey]]:
    """The keys of each group, in order."""
    groups: dict[GroupT, list[ListedKey]] = {}
    for group, key in pairs:
        groups.setdefault(group, []).append(key)
    return groups


def _ages(ages: Sequence[AgeBand], layout: TableLayout) -> Iterator[str]:
    yield from _title("Age of the keys", "in days", layout)
    most = max(band.keys for band in ages)
    widest = min(_LONGEST_BAR, layout.width - 24)
    for band in ages:
        name = f"{band.begin} to {band.end - 1}" if band.end else f"{band.begin} and more"
        bar = "#" * -(-band.keys * widest // most if most else 0)
        if layout.colour:
            bar = styled(bar, CYAN)
        yield f"  {name:<12} {f'{bar} ' if bar else ''}{band.keys:,}\n"


def _timeline(overview: Overview, screen: Screen, most: int) -> Iterator[str]:
    """The keys of the domains with what is due first."""
    layout = screen.layout
    shown = first_domains(overview.statuses, most)
    if not shown:
        return
    yield from _title("Timeline", "what is due first", layout)
    renamed = [
        one._replace(sign_domain=readable(one.sign_domain, layout.encoding)) for one in shown
    ]
    yield from render_all(TimelineRenderer(layout, overview.now), renamed)
    if more := len(overview.statuses) - len(shown):
        text = f"{_counted(more, 'more key')}: {_ALL}"
        yield from wrapped(screen.complete(text), layout.width)


def first_domains(statuses: Sequence[KeyStatus], most: int) -> list[KeyStatus]:
    """The keys of the first domains, each domain's together and whole, about `most` of them."""
    by_domain: dict[str, list[KeyStatus]] = {}
    for status in statuses:
        by_domain.setdefault(status.sign_domain, []).append(status)
    shown: list[KeyStatus] = []
    for keys in by_domain.values():
        if shown and len(shown) + len(keys) > most:
            break
        shown += keys
    return shown


def _title(title: str, more: str, layout: TableLayout) -> Iterator[str]:
    yield "\n"
    yield _titled(title, more, layout)


def _titled(title: str, more: str, layout: TableLayout) -> str:
    if layout.colour:
        title, more = styled(title, BOLD), styled(more, DIM) if more else ""
    return f"{title} {more}".rstrip() + "\n"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


def _counted(count: int, one: str) -> str:
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def _name(key: ListedKey, encoding: str) -> str:
    name = readable(key.sign_domain, encoding)
    return printable(f"{name} ({key.selector})" if key.selector else name)
