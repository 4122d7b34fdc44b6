"""Change DNS where a target covers the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dkimctl.errors import DkimctlError
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.publishing.changes import Action, Applied, ConfiguredTarget
from dkimctl.publishing.plan import PublicationPlan, apply_plan, make_plan

_NONE = frozenset[RegistrationKey]()

Targets = Sequence[ConfiguredTarget] | DkimctlError
"""The targets of the config file, or why none of them can be used."""


class DnsChanges(NamedTuple):
    """What became of records; a key in none of these is at its target as it should be.

    `changed`: written, or in a dry run to be written. `blocked`: with the reason. `failed`: not
    read or not written. `uncovered`: in no zone of any target.
    """

    changed: frozenset[RegistrationKey] = _NONE
    blocked: Mapping[RegistrationKey, str] = {}
    failed: Mapping[RegistrationKey, DkimctlError] = {}
    uncovered: frozenset[RegistrationKey] = _NONE


def change_dns(
    registrations: Sequence[Registration],
    targets: Targets,
    *,
    remove: bool,
    is_dry: bool,
) -> DnsChanges:
    """Publish the records of these registrations, or `remove` them, as far as needed."""
    if not registrations:
        return DnsChanges()
    if isinstance(targets, DkimctlError):
        return DnsChanges(failed={one.key: targets for one in registrations})
    plan = make_plan(registrations, targets, remove=remove)
    failed = {one.key: zone.error for zone in plan.zones if zone.error for one in zone.unread}
    changed = {one.registration.key for zone in plan.zones for one in zone.to_apply}
    if not is_dry:
        errors = _apply(plan)
        failed |= errors
        changed -= errors.keys()
    blocked = {
        one.registration.key: one.reason for one in plan.changes if one.action is Action.BLOCKED
    }
    uncovered = frozenset(one.key for one in plan.uncovered)
    return DnsChanges(frozenset(changed), blocked, failed, uncovered)


def _apply(plan: PublicationPlan) -> dict[RegistrationKey, DkimctlError]:
    errors: dict[RegistrationKey, DkimctlError] = {}

    def note(applied: Applied) -> None:
        if applied.error is not None:
            errors[applied.change.registration.key] = applied.error

    apply_plan(plan, note)
    return errors
