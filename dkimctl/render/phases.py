"""The phases of a key's life, from its dates: what timelines draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.models.key_status import KeyStatus


class Phase(NamedTuple):
    """A part of a key's life, from one date to the first later one that is known.

    `begins` and `ends` are fields of KeyDates.
    """

    name: str
    begins: str
    ends: Sequence[str]


PHASES = (
    Phase("registered", "created_at",
          ("published_at", "starts_at", "replaced_at", "removable_at", "removed_at")),
    Phase("published", "published_at", ("starts_at", "replaced_at", "removable_at", "removed_at")),
    Phase("signing", "starts_at", ("replaced_at", "removed_at")),
    Phase("grace period", "replaced_at", ("removable_at", "removed_at")),
    Phase("retired", "removable_at", ("removed_at",)),
)  # fmt: skip


class Span(NamedTuple):
    """A phase of one key, and its times (UTC)."""

    phase: Phase
    begin: datetime
    end: datetime


def spans_of(status: KeyStatus, now: datetime) -> Iterator[Span]:
    """The phases of a key whose begin is known; a later one may begin before the end of another.

    A phase whose end is not known goes on until now, or until something is due.
    """
    open_end = max(now, status.due or now)
    for phase in PHASES:
        begin = getattr(status.dates, phase.begins)
        if begin is None:
            continue
        dates = [getattr(status.dates, name) for name in phase.ends]
        end = min((date for date in dates if date is not None), default=max(begin, open_end))
        if end >= begin:
            yield Span(phase, begin, end)
