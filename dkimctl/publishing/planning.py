"""What to change in DNS, by zone."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from dkimctl.errors import DkimctlError
from dkimctl.models.registration import Registration
from dkimctl.publishing.changes import Action, Change, NameState
from dkimctl.publishing.coverage import TargetZone, find_target_zones
from dkimctl.publishing.decisions import Decision, decide
from dkimctl.publishing.parallel import work_in_parallel
from dkimctl.publishing.targets import ConfiguredTarget, Target

_NO_CHANGE = (Action.KEEP, Action.BLOCKED)

NamedRegistrations: TypeAlias = list[tuple[str, Registration]]  # each with the name of its record
_Decide: TypeAlias = Callable[[str, NameState], Decision]


class ZonePlan(NamedTuple):
    """The changes to a zone, in the order of the registrations.

    `error`: why the zone could not be read; there are no changes then, `unread` are the
    registrations that could not be planned, and `zone` may be "".
    """

    target: Target
    zone: str
    changes: Sequence[Change]
    error: DkimctlError | None = None
    unread: Sequence[Registration] = ()

    @property
    def to_apply(self) -> list[Change]:
        """The changes that are to be made."""
        return [change for change in self.changes if change.action not in _NO_CHANGE]


class PublicationPlan(NamedTuple):
    """The plan of each zone; `uncovered` are registrations in no zone of any target."""

    zones: Sequence[ZonePlan]
    uncovered: Sequence[Registration]

    @property
    def changes(self) -> list[Change]:
        """All changes, also those that are not to be made."""
        return [change for zone in self.zones for change in zone.changes]


def make_plan(
    registrations: Iterable[Registration],
    targets: Sequence[ConfiguredTarget],
    *,
    remove: bool = False,
    replace_foreign: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> PublicationPlan:
    """Read what DNS has at the names of these registrations, and plan what to change.

    Each has a sound record. `remove`: their records are to go. `replace_foreign`: also replace TXT
    records that are not DKIM key records. `progress` is told, in this thread, how many of the
    registrations are planned, at least five times a second.
    """
    jobs, uncovered = by_target_zone(registrations, targets)
    decide_one = functools.partial(decide, remove=remove, replace_foreign=replace_foreign)
    plans: list[ZonePlan] = []
    planned = 0

    def add(plan: ZonePlan) -> None:
        nonlocal planned
        plans.append(plan)
        planned += len(plan.changes) + len(plan.unread)
        progress(planned)

    work_in_parallel(
        jobs,
        lambda job: [_plan_zone(*job, decide_one, remove=remove)],
        add,
        wait=lambda: progress(planned),
    )
    return PublicationPlan(sorted(plans, key=lambda one: (one.zone, one.target.label)), uncovered)


def by_target_zone(
    registrations: Iterable[Registration], targets: Sequence[ConfiguredTarget]
) -> tuple[list[tuple[TargetZone, NamedRegistrations]], list[Registration]]:
    """The registrations in each zone, with their names, and those in no zone of a target."""
    named = [(one.record.fqdn.lower(), one) for one in registrations if one.record is not None]
    target_zones = find_target_zones([name for name, _ in named], targets)
    grouped: dict[tuple[int, str, str], tuple[TargetZone, NamedRegistrations]] = {}
    uncovered = []
    for name, registration in named:
        target_zone = target_zones[name]
        if target_zone is None:
            uncovered.append(registration)
            continue
        reason = target_zone.error.message if target_zone.error else ""
        key = (id(target_zone.target), target_zone.zone, reason)
        grouped.setdefault(key, (target_zone, []))[1].append((name, registration))
    return list(grouped.values()), uncovered


def _plan_zone(
    target_zone: TargetZone, named: NamedRegistrations, decide_one: _Decide, *, remove: bool
) -> ZonePlan:
    target, zone, error = target_zone
    states: Mapping[str, NameState] = {}
    if error is None:
        try:
            states = target.read(zone, list(dict(named)))
        except DkimctlError as failure:
            error = failure
    if error is not None:
        return ZonePlan(target, zone, [], error, [registration for _, registration in named])
    counts = Counter(name for name, _ in named)
    changes = []
    for name, registration in named:
        record, state = registration.record, states[name]
        if record is None:
            continue
        action, reason = decide_one(record.value, state)
        if counts[name] > 1:
            action, reason = Action.BLOCKED, "another registration has a record of the same name"
        value = None if remove else record.value
        changes.append(Change(registration, record, action, state, value, target.ttl, reason))
    return ZonePlan(target, zone, changes)
