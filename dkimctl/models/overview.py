"""What matters today, as values: what is urgent, what comes, and how old the keys are."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from dkimctl.models.key_status import KeyStatus
from dkimctl.models.listed_key import ListedKey

WEEK, MONTH = timedelta(days=7), timedelta(days=30)


class Event(NamedTuple):
    """Something that happens, or is to be done, by itself or by `rotate run`, at a time (UTC)."""

    at: datetime
    what: str
    key: ListedKey


class AgeBand(NamedTuple):
    """How many keys are at least `begin` days old, and fewer than `end`; None: no end."""

    begin: int
    end: int | None
    keys: int


class Overview(NamedTuple):
    """The keys in use, counted; those that need people; and events, in order.

    `week` are the events of the next 7 days and those that are overdue, `month` those of the 23
    days after that. `looked_at` is the latest look at DNS; None: never.
    """

    now: datetime
    domains: int
    keys: int
    stages: Counter[str]
    states: Counter[str]
    key_lengths: Counter[int]
    looked_at: datetime | None
    urgent: Sequence[ListedKey]
    undecided: Sequence[ListedKey]
    week: Sequence[Event]
    month: Sequence[Event]
    ages: Sequence[AgeBand]
    statuses: Sequence[KeyStatus]
