"""The entries for successors, and how many of them a day has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import DomainSpec, Registration
from dkimctl.rotation.succession import Histories
from dkimctl.rotation.successors import RotationPolicy, start_date
from dkimctl.settings.config import RotationSettings
from dkimctl.specs.selector_template import SelectorTemplate

_TEMPLATE = "s%Y%m%d"
_MAX_LATENESS = timedelta(days=1)  # between two runs
_KEY_LEN = 2048  # bits, at least (RFC 8301 section 3.2)


def spec_of(
    old: Registration, selector: str | None, settings: RotationSettings, now: datetime
) -> DomainSpec:
    """A successor of `old`. Its fields are all set: the defaults of a profile change nothing.

    A run that is late leaves less time, by up to a day: so old keys sign no longer than with
    punctual runs.
    """
    return DomainSpec(
        old.sign_domain,
        selector,
        max(_KEY_LEN, old.key_len or 0),
        start_date(now, settings.lead - _lateness(old, settings, now)),
        old.third_party,
        enable=True,
        replaces=old.selector,
    )


def _lateness(old: Registration, settings: RotationSettings, now: datetime) -> timedelta:
    """How long the key has been due, as far as that counts."""
    late = now - (old.created_at or now) - settings.max_age
    return max(timedelta(), min(late, _MAX_LATENESS, settings.lead / 4))


def rotation_policy(settings: RotationSettings, now: datetime) -> RotationPolicy:
    """When a key is due; what `spec_of` makes counts for the rest."""
    template = SelectorTemplate(_TEMPLATE, now.astimezone(UTC))
    start = start_date(now, settings.lead)
    return RotationPolicy(settings.max_age, start, _KEY_LEN, template.selector)


def count_registered_on(
    now: datetime, registrations: Iterable[Registration], histories: Histories
) -> int:
    """How many successors were registered on this day (UTC)."""
    return sum(
        one.created_at is not None
        and one.created_at.date() == now.astimezone(UTC).date()
        and histories.get(one.key, KeyHistory()).replaces is not None
        for one in registrations
    )
