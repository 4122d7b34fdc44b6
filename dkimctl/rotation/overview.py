"""What matters today: what is urgent, what comes this week and month, and how old the keys are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from dkimctl.models.key_status import KeyStage, NextAction
from dkimctl.models.listed_key import ListedKey
from dkimctl.models.overview import MONTH, WEEK, AgeBand, Event, Overview
from dkimctl.rotation.stages import due_first

_STARTS = "signing starts"
_WHATS = {
    NextAction.PUBLISH: "publish",
    NextAction.REGISTER: "register successor",
    NextAction.REMOVE: "remove record",
}
_AGES = (30, 90, 180, 365)  # days: where one band of ages ends and the next begins
_NOT_IN_USE = (KeyStage.REMOVED, KeyStage.TAKEN, KeyStage.UNANSWERED)


def make_overview(keys: Iterable[ListedKey], now: datetime) -> Overview:
    """The overview of these keys, removed ones left out."""
    known = sorted(
        (key for key in keys if not key.is_removed), key=lambda key: due_first(key.status)
    )
    used = [key for key in known if key.status.stage not in _NOT_IN_USE]
    events = [event for key in known for event in _events(key, now)]
    events.sort(key=lambda event: event.at)
    looks = [key.looked_at for key in used if key.looked_at is not None]
    return Overview(
        now,
        len({key.sign_domain for key in used}),
        len(used),
        Counter(str(key.status.stage) for key in known),
        Counter(str(key.state) for key in used if key.state is not None),
        Counter(key.key_len for key in used if key.key_len is not None),
        max(looks, default=None),
        [key for key in known if key.status.urgency],
        [key for key in known if key.status.needs_attention and not key.status.urgency],
        [event for event in events if event.at < now + WEEK],
        [event for event in events if event.at >= now + WEEK],
        _bands(used),
        [key.status for key in known],
    )


def _events(key: ListedKey, now: datetime) -> Iterator[Event]:
    """Those of a month; not that an urgent key is to be published, which is said anyway."""
    status, end = key.status, now + MONTH
    starts = key.starts_at if key.enable else None
    if starts is not None and now <= starts < end:
        yield Event(starts, _STARTS, key)
    what = _WHATS.get(status.action)
    if what and status.due is not None and status.due < end and not status.urgency:
        yield Event(status.due, what, key)


def _bands(keys: Sequence[ListedKey]) -> list[AgeBand]:
    days = [key.age.days for key in keys if key.age is not None]
    bounds = zip((0, *_AGES), (*_AGES, None), strict=True)
    return [
        AgeBand(begin, end, sum(begin <= age and (end is None or age < end) for age in days))
        for begin, end in bounds
    ]
