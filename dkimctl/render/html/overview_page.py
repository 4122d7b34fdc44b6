"""The overview as a page, for people who have no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from dkimctl.models.keys import KeyStatus
from dkimctl.render.html.page import render_page
from dkimctl.render.overview import (
    MONTH,
    PHASES,
    WEEK,
    Event,
    Overview,
    first_domains,
    grouped,
    spans_of,
)
from dkimctl.text.dns_names import readable

_MOST_DAYS = 20  # rows of a week or month
_MOST_KEYS = 40  # of the timeline
_PAST, _FUTURE = timedelta(days=365), timedelta(days=180)  # that are drawn at most
_WIDTH = 600.0  # of the bars, in units of the picture


class _Scale:
    """Where times are in the timeline."""

    def __init__(self, statuses: Sequence[KeyStatus], now: datetime) -> None:
        times = [time for status in statuses for time in (*status.dates, status.due) if time]
        self._first = max(min([now, *times]), now - _PAST)
        last = min(max([now + timedelta(days=30), *times]), now + _FUTURE)
        self._last = max(last, self._first + timedelta(days=1))

    def x(self, time: datetime) -> float:
        share = (time - self._first) / (self._last - self._first)
        return round(max(0.0, min(share, 1.0)) * _WIDTH, 1)

    def ticks(self) -> Iterator[dict[str, object]]:
        """The first days of months."""
        year, month = self._first.year, self._first.month
        while (time := datetime(year, month, 1, tzinfo=UTC)) <= self._last:
            if time >= self._first:
                yield {"x": self.x(time), "label": f"{time:%Y-%m}"}
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def overview_page(overview: Overview, profile: str) -> str:
    """The page, for the keys of a profile."""
    shown = first_domains(overview.statuses, _MOST_KEYS)
    scale = _Scale(shown, overview.now)
    return render_page(
        "overview.html",
        overview=overview,
        profile=profile,
        name_of=readable,
        week=_event_rows(overview.week, overview.now),
        month=_event_rows(overview.month, overview.now),
        week_length=WEEK,
        month_length=MONTH,
        rows=[_row(status, scale, overview.now) for status in shown],
        left_out=len(overview.statuses) - len(shown),
        today=scale.x(overview.now),
        ticks=[*scale.ticks()],
        phases=[phase.name for phase in PHASES],
        width=_WIDTH,
        most=max((band.keys for band in overview.ages), default=0) or 1,
    )


def _event_rows(events: Sequence[Event], now: datetime) -> list[dict[str, object]]:
    """A row for each day and kind of event; for each kind alone if those are many."""
    by_day = grouped(
        ((str(at.date()) if at >= now else "overdue", what), key) for at, what, key in events
    )
    rows = [(day, what, keys) for (day, what), keys in by_day.items()]
    if len(rows) > _MOST_DAYS:
        firsts = {what: day for day, what in reversed(by_day)}
        kinds = grouped((event.what, event.key) for event in events)
        rows = [(f"from {firsts[what]}", what, keys) for what, keys in kinds.items()]
    return [{"day": day, "what": what, "of": keys} for day, what, keys in rows]


def _row(status: KeyStatus, scale: _Scale, now: datetime) -> dict[str, object]:
    """A key in the timeline; `x` and `width` are in units of the picture."""
    bars = []
    for phase, begin, end in spans_of(status, now):
        x = scale.x(begin)
        width = max(round(scale.x(end) - x, 1), 2.0)
        bars.append({"phase": phase.name, "x": x, "width": width})
    return {
        "domain": readable(status.sign_domain),
        "selector": status.selector or "",
        "is_urgent": bool(status.urgency),
        "bars": bars,
    }
