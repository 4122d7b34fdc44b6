"""What a plan, and its application, come to for each registration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns.verdicts import Check
from dkimctl.errors import DkimctlError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.publishing.changes import Applied, Change
from dkimctl.publishing.planning import PublicationPlan


class Step(StrEnum):
    """What happens at the name of a registration: an Action, or why there is none."""

    CREATE = "create"
    REPLACE = "replace"
    REMOVE = "remove"
    KEEP = "keep"
    BLOCKED = "blocked"
    UNCOVERED = "uncovered"  # by any target
    UNREAD = "unread"  # its zone could not be read


CHANGING = frozenset((Step.CREATE, Step.REPLACE, Step.REMOVE))


class PlanItem(NamedTuple):
    """One registration of a plan. `zone` and `target`, a label, are "" where there is none.

    `change` is None without a target, or if the zone could not be read. `is_applied`: the change
    was made; `error`: why it was not, or why the zone was not read. `check` is what DNS has after
    that, if it was asked.
    """

    registration: Registration
    step: Step
    zone: str = ""
    target: str = ""
    change: Change | None = None
    is_applied: bool = False
    error: DkimctlError | None = None
    check: Check | None = None

    @property
    def key(self) -> RegistrationKey:
        return self.registration.key

    @property
    def fqdn(self) -> str:
        record = self.registration.record
        return record.fqdn if record else ""

    @property
    def reason(self) -> str:
        """Why the change is not, or cannot be, made; or ""."""
        if self.error is not None:
            return self.error.message
        return self.change.reason if self.change else ""


def items_of(plan: PublicationPlan) -> Iterator[PlanItem]:
    """The items of a plan, by zone."""
    for zone in plan.zones:
        place = zone.zone, zone.target.label
        for change in zone.changes:
            yield PlanItem(change.registration, Step(change.action), *place, change)
        for registration in zone.unread:
            yield PlanItem(registration, Step.UNREAD, *place, error=zone.error)
    for registration in plan.uncovered:
        yield PlanItem(registration, Step.UNCOVERED)


def with_outcome(item: PlanItem, applied: Mapping[RegistrationKey, Applied]) -> PlanItem:
    """The item, with what became of its change."""
    outcome = applied.get(item.key)
    if outcome is None:
        return item
    return item._replace(is_applied=outcome.error is None, error=outcome.error)
