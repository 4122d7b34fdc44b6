"""Which keys a run removes from DNS, and why it leaves others there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.rotation.retirement import RetirementStatus, Stage
from dkimctl.rotation.run.refreshing import Refreshed
from dkimctl.rotation.run.report import State, Step, Task


class Removal(NamedTuple):
    """A retired key, and the one that signs in its place, since when it `took_over`."""

    registration: Registration
    successor: Registration
    took_over: datetime


def find_removals(
    statuses: Iterable[RetirementStatus],
    confirmed: Collection[RegistrationKey],
    published: Collection[RegistrationKey],
) -> list[Removal]:
    """The retired keys of which a successor is `published` and `confirmed` by the service."""
    found = []
    for status in statuses:
        if status.stage is not Stage.RETIRED or status.takeover is None:
            continue
        sure = (one for one in status.successors if one.key in confirmed and one.key in published)
        if (successor := next(sure, None)) is not None:
            found.append(Removal(status.registration, successor, status.takeover.took_over))
    return found


def refused_removals(before: Iterable[RetirementStatus], refreshed: Refreshed) -> Iterator[Task]:
    """The tasks of keys that stay, since the service has not confirmed any of their successors.

    `before` are the statuses before the service was asked.
    """
    for status in before:
        keys = [one.key for one in status.successors]
        if not status.is_over or not keys or not refreshed.confirmed.isdisjoint(keys):
            continue
        reason = refreshed.refused.get(keys[0])
        if reason is not None and refreshed.error is None:
            text = f"its successor {keys[0].selector}: {reason}; so this one stays"
            yield Task(Step.REMOVE, State.BLOCKED, status.registration, text)
        else:
            text = f"the service has not confirmed its successor {keys[0].selector}"
            yield Task(Step.REMOVE, State.DUE, status.registration, text)


def waiting_removals(statuses: Sequence[RetirementStatus]) -> Iterator[Task]:
    """The tasks of keys whose grace period is over, but that cannot be removed yet."""
    for status in statuses:
        is_due = status.stage is Stage.DUE and status.is_over
        if is_due or status.stage is Stage.UNKNOWN:
            yield Task(Step.REMOVE, State.WAITING, status.registration, status.reason)
