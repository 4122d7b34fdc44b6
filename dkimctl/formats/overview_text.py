"""What matters today: as values, as JSON, and as text that fits one screen of a terminal."""

from __future__ import annotations

import heapq
import itertools
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from dkimctl.dns.verdicts import Urgency
from dkimctl.formats.data import json_line
from dkimctl.formats.keys import key_fields
from dkimctl.formats.renderer import TableLayout
from dkimctl.formats.table import Style, columns_of, padded_to, set_apart, styled, wrapped
from dkimctl.models import NO_REPORTS_FOR, MailStats, written_time
from dkimctl.rotation.life import NOT_IN_USE, Key, KeyStage, NextAction, due_first
from dkimctl.rotation.successors import limits_too_low
from dkimctl.settings.rotation import RotationSettings
from dkimctl.text import format_duration, printable, readable

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
MOST_DOMAINS = 40  # of a timeline
_WHATS = {
    NextAction.PUBLISH: "publish",
    NextAction.REGISTER: "register successor",
    NextAction.REMOVE: "remove record",
}
_AGES = (30, 90, 180, 365)  # days: where one band of ages ends and the next begins


class Milestone(NamedTuple):
    """Something that happens, or is to be done, by itself or by `rotate run`, at a time."""

    at: datetime
    what: str
    key: Key


class AgeBand(NamedTuple):
    """How many keys are at least `begin` days old, and fewer than `end`; None: no end."""

    begin: int
    end: int | None
    keys: int


class MailOverview:
    """The mail of the last 7 days, as DMARC reports tell of it."""

    def __init__(self) -> None:
        self.is_known = False  # there are reports
        self.passed = self.failed = 0
        self.unreported = 0  # domains that sign for long, and of which no reports tell
        self.failing: list[Key] = []
        self._keys: list[tuple[MailStats, Key]] = []  # with mail

    @property
    def worst(self) -> list[tuple[MailStats, Key]]:
        """The MOST_DOMAINS keys with the most mail that failed."""
        return heapq.nlargest(MOST_DOMAINS, self._keys, key=lambda pair: pair[0].failed)

    def add(self, of_domain: Iterable[Key], now: datetime) -> None:
        is_unreported = False
        for key in of_domain:
            if (mail := key.mail) is None:
                return
            self.is_known, since = True, key.dates.signs_since or now
            is_unreported |= not mail.is_reported and since <= now - NO_REPORTS_FOR
            self.passed += mail.passed
            self.failed += mail.failed
            self.failing += [key] if mail.is_failing else []
            self._keys += [(mail, key)] if mail.messages else []
        self.unreported += is_unreported
        if len(self._keys) > 25 * MOST_DOMAINS:
            self._keys = self.worst


class Overview:
    """The keys in use, counted; those that need people; and events, in order.

    Of `keys`, those of a domain stand together; removed ones are left out.
    """

    def __init__(self, keys: Iterable[Key], now: datetime) -> None:
        self.now = now
        self.domains = self.keys = 0
        self.known = 0  # keys, also those that are not in use
        self.stages, self.states = Counter[str](), Counter[str]()
        self.key_lengths = Counter[int]()
        self.looked_at: datetime | None = None  # the latest look at DNS; None: never
        self.urgent, self.undecided = list[Key](), list[Key]()
        self.overdue = list[Key]()  # what `rotate run` should have done a lead ago
        self.mail = MailOverview()
        self._events = list[Milestone]()
        self._ages = [0] * (len(_AGES) + 1)
        self._lines = Counter[RotationSettings]()  # of enabled keys, by policy
        # Few of all keys are kept: there may be 100,000.
        first = heapq.nsmallest(MOST_DOMAINS, self._count(keys), key=itemgetter(0))
        #: Those of the MOST_DOMAINS of which something is due first, in that order.
        self.first = [key for _, of_domain in first for key in of_domain]
        for some in (self.urgent, self.undecided, self.overdue):
            some.sort(key=due_first)
        # A start has its own offset.
        events = sorted(self._events, key=lambda event: (event.at.date(), event.at))
        #: Of the next 7 days, and those that are overdue; and of the 23 days after that.
        self.week = [event for event in events if event.at < now + WEEK]
        self.month = [event for event in events if event.at >= now + WEEK]
        self.ages = [*map(AgeBand, (0, *_AGES), (*_AGES, None), self._ages)]
        #: Of policies that cannot keep up with their keys.
        self.limits = [*limits_too_low(self._lines.items(), now)]

    @property
    def is_bad(self) -> bool:
        """Whether a key is urgent or not used, a pool runs out, or no timer seems to run."""
        is_low = any(key.is_last or key.is_not_followed for key in self.undecided)
        return bool(self.urgent or self.overdue) or is_low

    def _count(self, keys: Iterable[Key]) -> Iterator[tuple[tuple[object, ...], list[Key]]]:
        """The keys of each domain, when they are counted, and when something of it is due."""
        now, end = self.now, self.now + MONTH
        kept = (key for key in keys if not key.is_removed)
        for _, group in itertools.groupby(kept, attrgetter("sign_domain")):
            of_domain, before = sorted(group, key=due_first), self.keys
            for key in of_domain:
                self.known += 1
                self.stages[key.stage] += 1
                if key.urgency:
                    self.urgent.append(key)
                elif key.needs_attention:
                    self.undecided.append(key)
                if key.is_overdue(now):
                    self.overdue.append(key)
                if key.enable and key.starts_at is not None and now <= key.starts_at < end:
                    self._events.append(Milestone(key.starts_at, "signing starts", key))
                what = _WHATS.get(key.action)
                if what and key.due is not None and key.due < end and not key.urgency:
                    self._events.append(Milestone(key.due, what, key))
                if key.stage in NOT_IN_USE:
                    continue
                self.keys += 1
                self.states[str(key.state)] += 1
                if key.key_len is not None:
                    self.key_lengths[key.key_len] += 1
                if key.looked_at is not None:
                    self.looked_at = max(self.looked_at or key.looked_at, key.looked_at)
                if key.age is not None:
                    self._ages[bisect(_AGES, key.age.days)] += 1
            self.domains += self.keys > before
            self.mail.add(of_domain, now)
            enabled = {each.registration.third_party for each in of_domain if each.enable}
            self._lines[key.policy] += len(enabled)
            yield due_first(of_domain[0]), of_domain


def overview_lines(overview: Overview) -> Iterator[str]:
    """One JSON object, with a line for each of its members; times are UTC, to the second."""

    def items(events: Sequence[Milestone]) -> Iterator[dict[str, object]]:
        for at, what, key in events:
            yield {"at": written_time(at), "what": what, "sign_domain": key.sign_domain,
                   "selector": key.selector}  # fmt: skip

    mail = overview.mail
    members = {
        "at": written_time(overview.now),
        "domains": overview.domains,
        "keys": overview.keys,
        "stages": overview.stages,
        "states": overview.states,
        "key_lengths": {str(bits): count for bits, count in overview.key_lengths.items()},
        "looked_at": written_time(overview.looked_at),
        "urgent": map(key_fields, overview.urgent),
        "undecided": map(key_fields, overview.undecided),
        "overdue": map(key_fields, overview.overdue),
        "week": items(overview.week),
        "month": items(overview.month),
        "ages": (band._asdict() for band in overview.ages),
        "mail": {"passed": mail.passed, "failed": mail.failed,
                 "domains_without_reports": mail.unreported} if mail.is_known else None,
        "failing": map(key_fields, mail.failing),
    }  # fmt: skip
    for number, (name, value) in enumerate(members.items()):
        yield (",\n" if number else "{") + f'"{name}": '
        if isinstance(value, Iterator):  # perhaps of all keys, so not made at once
            yield "["
            yield from (f"{',' if at else ''}{json_line(item)}" for at, item in enumerate(value))
            yield "]"
        else:
            yield json_line(value)
    yield "}\n"


_MOST_DATES = 7  # lines of a week or month
_FEWEST_KEYS, _MOST_KEYS = 3, 30  # of the timeline
_AROUND_TIMELINE = 8  # lines: title, scale, legend, what is left out, and the prompt
_LONGEST_BAR = 40
_URGENCIES = {
    Urgency.SIGNING: "signing now without DNS",
    Urgency.PARTLY: "signing now, partly in DNS",
    Urgency.SOON: "signing starts soon, not in DNS",
}
# A day or "", what is said of it, and of which keys.
Row: TypeAlias = tuple[str, str, Sequence[Key]]


def overview_text(
    overview: Overview, layout: TableLayout, height: int, complete: Callable[[str], str] = str
) -> Iterator[str]:
    """The sections, with an empty line between two; the timeline takes the lines that are left.

    `height` is in lines; `complete` adds the options of the profile to a command.
    """
    now = overview.now
    title = f"{_counted(overview.domains, 'domain')}, {_counted(overview.keys, 'key')}"
    lines = [_title(title, f"on {now:%Y-%m-%d}", layout).lstrip("\n")]
    in_dns = _counts(overview.states)
    if overview.states and overview.looked_at is not None:
        in_dns += f"; last look {format_duration(now - overview.looked_at, units=1)} ago"
    bits = {f"{length} bits": count for length, count in sorted(overview.key_lengths.items())}
    facts = {"Stages": _counts(overview.stages), "In DNS": in_dns, "Keys": _counts(bits)}
    for name, text in facts.items():
        lines += wrapped(f"{name:<7} {text}", layout) if text else ()
    if overview.urgent:
        lines.append(_title("Urgent", "", layout))
        urgent = [("", _URGENCIES[Urgency(key.urgency)], key) for key in overview.urgent]
        lines += _rows(urgent, Style.BOLD_RED, layout)
    if overview.undecided:
        why = complete("`dkimctl list --sort-by due` says why")
        lines.append(_title("For you to decide", why, layout))
        undecided = []
        for key in overview.undecided:
            what = "successor does not sign" if key.is_not_followed else str(key.action)
            undecided.append(("", f"{key.left} left in pool" if key.is_last else what, key))
        lines += _rows(undecided, Style.YELLOW, layout)
    for name, events, until in (
        ("This week", overview.week, now + WEEK), ("This month", overview.month, now + MONTH)
    ):  # fmt: skip
        lines.append(_title(name, f"until {until:%Y-%m-%d}", layout))
        overdue = [("overdue", what, key) for at, what, key in events if at < now]
        lines += _rows(overdue, Style.BOLD_RED, layout)
        coming = [(str(at.date()), what, key) for at, what, key in events if at >= now]
        lines += _rows(coming, Style.CYAN, layout, _MOST_DATES)
        lines += [] if events else ["  nothing\n"]
    if (mail := overview.mail).is_known:
        counts = f"{mail.passed:,} passed, {mail.failed:,} failed in 7 days, by DMARC reports"
        lines.append(_title("Mail", counts, layout))
        lines += _rows([("", "over 5% failed", key) for key in mail.failing], Style.YELLOW, layout)
        if mail.unreported:
            silent = _counted(mail.unreported, "domain")
            lines.append(f"  no reports for {silent} in the last {NO_REPORTS_FOR.days} days\n")
    lines.append(_title("Age of the keys", "in days", layout))
    most = max(band.keys for band in overview.ages)
    for band in overview.ages:
        days = f"{band.begin} to {band.end - 1}" if band.end else f"{band.begin} and more"
        length = -(-band.keys * min(_LONGEST_BAR, layout.width - 24) // most) if most else 0
        bar = styled("#" * length, Style.CYAN, layout)
        lines.append(f"  {days:<12} {f'{bar} ' if bar else ''}{band.keys:,}\n")
    yield from lines
    left = height - sum(line.count("\n") for line in lines) - _AROUND_TIMELINE
    shown = first_domains(overview.first, min(max(left, _FEWEST_KEYS), _MOST_KEYS))
    if not shown:
        return
    yield _title("Timeline", "what is due first", layout)
    yield from timeline(shown, now, layout)
    if more := overview.known - len(shown):
        rest = f"{_counted(more, 'more key')}: `dkimctl list --sort-by due` lists all"
        yield from wrapped(complete(rest), layout)


def rows_of_events(events: Sequence[tuple[str, str, Key]], most: int | None) -> Sequence[Row]:
    """A row for each day and kind of event; for each kind alone if those are more than `most`."""
    by_day: dict[tuple[str, str], list[Key]] = {}
    by_kind: dict[str, tuple[str, list[Key]]] = {}  # with the first day
    for day, what, key in events:
        by_day.setdefault((day, what), []).append(key)
        by_kind.setdefault(what, (day, []))[1].append(key)
    if most is None or len(by_day) <= most:
        return [(day, what, keys) for (day, what), keys in by_day.items()]
    return [(f"from {day}", what, keys) for what, (day, keys) in by_kind.items()]


def _rows(
    events: Sequence[tuple[str, str, Key]], style: str, layout: TableLayout, most: int | None = None
) -> Iterator[str]:
    """Columns; of the names as many as fit."""
    rows = rows_of_events(events, most)
    days = max((len(day) for day, _, _ in rows), default=0)
    whats = max((len(what) for _, what, _ in rows), default=0)
    for day, what, keys in rows:
        head = f"  {day:<{days}}  " if days else "  "
        count = _counted(len(keys), "key")
        left = layout.width - len(head) - whats - len(count) - len("    ")
        names, text = "", ""  # the first names, and how many more
        for number, key in enumerate(keys, start=1):
            name = readable(key.sign_domain, layout.encoding)
            name = f"{name} ({key.selector})" if key.selector else name
            names += (", " if names else "") + printable(name)
            more = f" and {len(keys) - number} more" if number < len(keys) else ""
            if columns_of(names + more) > left:
                break
            text = names + more
        shown = styled(f"{what:<{whats}}", style, layout)
        yield f"{head}{shown}  {count}  {text}".rstrip() + "\n"


def _title(title: str, more: str, layout: TableLayout) -> str:
    more = styled(more, Style.DIM, layout) if more else ""
    return f"\n{styled(title, Style.BOLD, layout)} {more}".rstrip() + "\n"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda count: -count[1])
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


def _counted(count: int, singular: str) -> str:
    return f"{count:,} {singular}" if count == 1 else f"{count:,} {singular}s"


# The timeline: bars that read without colour, and in ASCII, by a character for each phase of a
# key's life. The first begins with the first date of KeyDates, the second with the second, ...
_LOOKS = {
    KeyStage.REGISTERED: (".", Style.DIM),
    KeyStage.PUBLISHED: ("o", Style.CYAN),
    KeyStage.SIGNING: ("#", Style.GREEN),
    KeyStage.GRACE: ("~", Style.YELLOW),
    KeyStage.RETIRED: ("x", Style.RED),
}
PHASES = tuple(_LOOKS)
_TODAY = "|"
# The characters of a bar, as far as they are alike; and one that the legend explains.
_RUN, _ALONE = r"([.o#~x|])\1*", r"(?<!\S)([.o#~x|])(?!\S)"
_STYLES = {_TODAY: Style.BOLD} | dict(_LOOKS.values())
_HEADER = ("DOMAIN", "SELECTOR")
_MIN_WIDTH = 40
_GAP = "  "  # between cells
_LONGEST_PAST, _LONGEST_FUTURE = timedelta(days=730), timedelta(days=365)  # that are drawn


def spans_of(key: Key, now: datetime) -> Iterator[tuple[KeyStage, datetime, datetime]]:
    """The phases of a key, each with its begin and end (UTC), as far as the begin is known.

    A later one may begin before the end of another. A phase whose end is not known goes on until
    now, or until something is due. There are none of a disabled key: nobody knows when it signed.
    """
    if key.stage is KeyStage.DISABLED:
        return
    open_end = max(now, key.due or now)
    for at, phase in enumerate(PHASES):
        begin, *later = key.dates[at:]
        if begin is None:
            continue
        end = min((date for date in later if date is not None), default=max(begin, open_end))
        if end >= begin:
            yield phase, begin, end


def first_domains(keys: Sequence[Key], most: int) -> list[Key]:
    """The keys of the first domains, each domain's together and whole, about `most` of them."""
    shown: list[Key] = []
    for _, group in itertools.groupby(keys, attrgetter("sign_domain")):
        of_domain = [*group]
        if shown and len(shown) + len(of_domain) > most:
            break
        shown += of_domain
    return shown


class Scale:
    """Where times are between the first and the last that are drawn, from 0 to 1 at most."""

    def __init__(
        self, statuses: Sequence[Key], now: datetime, past: timedelta, future: timedelta,
        least: timedelta = timedelta(),
    ) -> None:  # fmt: skip
        """At most `past` and `future`, and at least until `least` from now."""
        times = [time for status in statuses for time in (*status.dates, status.due) if time]
        self.first = max(min([now, *times]), now - past).astimezone(UTC)
        self.last = min(max([now + least, *times]), now + future).astimezone(UTC)

    def share(self, time: datetime) -> float:
        span = max(self.last - self.first, timedelta(days=1))
        return max(0.0, min((time - self.first) / span, 1.0))


def timeline(statuses: Sequence[Key], now: datetime, layout: TableLayout) -> Iterator[str]:
    """A scale, a bar for each key, and what the characters mean."""

    def coloured(text: str, pattern: str = _RUN) -> str:
        return re.sub(pattern, lambda run: styled(run[0], _STYLES[run[1]], layout), text)

    def lines(cells: Sequence[str], bar: str, style: str = "") -> Iterator[str]:
        """`bar` is coloured already."""
        apart, cells = set_apart(cells, widths, (True, True), layout)
        yield from (f"{line}\n" for line in apart)
        names = styled(_GAP.join(map(padded_to, cells, widths)), style, layout)
        yield f"{names}{_GAP}{bar}".rstrip() + "\n"

    def column_of(time: datetime) -> int:
        return min(int(scale.share(time) * columns), columns - 1)

    width = max(layout.width, _MIN_WIDTH)
    domains = [printable(readable(status.sign_domain, layout.encoding)) for status in statuses]
    rows = [*zip(domains, (printable(status.selector or "-") for status in statuses), strict=True)]
    widths = [
        min(max(map(columns_of, cells)), width // 3) for cells in zip(_HEADER, *rows, strict=True)
    ]
    columns = width - sum(widths) - len(widths) * len(_GAP)
    scale = Scale(statuses, now, _LONGEST_PAST, _LONGEST_FUTURE)
    first, last = str(scale.first.date()), str(scale.last.date())
    has_room = len(first) + len(last) < columns
    dates = first + last.rjust(columns - len(first)) if has_room else first[:columns]
    yield from lines(_HEADER, dates, Style.BOLD)
    for cells, status in zip(rows, statuses, strict=True):
        bar, today = [" "] * columns, column_of(now)
        for phase, begins, ends in spans_of(status, now):
            begin = column_of(begins)
            end = max(begin + 1, column_of(ends))
            bar[begin:end] = _LOOKS[phase][0] * (end - begin)
        if "".join(bar).isspace():
            yield from lines(cells, str(status.stage).rjust(today + 1)[:columns])
            continue
        if not "".join(bar[:today] + bar[today + 1 :]).isspace():  # else its only mark stays
            bar[today] = _TODAY
        yield from lines(cells, coloured("".join(bar)))
    yield "\n"
    legend = "  ".join(f"{character} {name}" for name, (character, _) in _LOOKS.items())
    for line in wrapped(f"{legend}  {_TODAY} today", layout):
        yield coloured(line, _ALONE)
