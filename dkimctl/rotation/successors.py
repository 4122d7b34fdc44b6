"""Successors of old keys: which signing domains are due, and what to register for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import MAX_NAME
from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey, by_signing_domain
from dkimctl.specs.names import MAX_LABEL, key_name_length

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection

_MINUTE = timedelta(minutes=1)


class RotationPolicy(NamedTuple):
    """When a key is due, and what its successor is.

    `start_date` is as in DomainSpec. `selector_for` gives the preferred selector for a signing
    domain.
    """

    older_than: timedelta
    start_date: str
    key_len: int
    selector_for: Callable[[str], str]


class Rotation(NamedTuple):
    """The successors to register, by signing domain, and domains to warn about.

    `undated`: the age of their keys is not known. `unanswered`: due, although a request for another
    selector was never answered.
    """

    successors: list[DomainSpec]
    undated: list[str]
    unanswered: list[str]


def plan_rotation(
    ledger: Ledger, selection: Selection, policy: RotationPolicy, now: datetime
) -> Rotation | None:
    """The rotation of the domains that have a selected registration; None if there are none.

    Raises UsageError like `find_successors`.
    """
    registrations = list(ledger.all())
    ours = (registration for registration in registrations if not registration.is_taken)
    domains = {registration.sign_domain for registration in selection.pick(ours)}
    if not domains:
        return None
    return find_successors(
        [registration for registration in registrations if registration.sign_domain in domains],
        [intent.key for intent in ledger.intents()],
        now,
        policy,
    )


def start_date(now: datetime, start_in: timedelta) -> str:
    """The first full minute after `start_in` has passed: `YYYY-MM-DDThh:mm+00:00`."""
    start = (now + start_in).astimezone(UTC)
    minute = start.replace(second=0, microsecond=0)
    return (minute if minute == start else minute + _MINUTE).isoformat(timespec="minutes")


def find_successors(
    registrations: Iterable[Registration],
    unanswered: Iterable[RegistrationKey],
    now: datetime,
    policy: RotationPolicy,
) -> Rotation:
    """The successors for the domains of `registrations`, which are all those of their domains.

    `unanswered` are the keys of requests without an answer. Raises UsageError that names the
    domains for which a selector is too long.
    """
    selectors: dict[str, set[str]] = {}
    for key in unanswered:
        selectors.setdefault(key.sign_domain, set()).add(key.selector)
    rotation = Rotation([], [], [])
    for domain, of_domain in by_signing_domain(registrations).items():
        _add_domain(rotation, domain, of_domain, selectors.get(domain, set()), now, policy)
    _require_fit(rotation.successors)
    return rotation


def _add_domain(
    rotation: Rotation,
    domain: str,
    registrations: Sequence[Registration],
    unanswered: set[str],
    now: datetime,
    policy: RotationPolicy,
) -> None:
    """Add one signing domain, if it is due or undated."""
    signing = [registration for registration in registrations if registration.signs]
    if not signing or any(_starts_later(registration, now) for registration in signing):
        return
    dated = [
        _Dated(created_at, registration)
        for registration in signing
        if (created_at := registration.created_at) is not None
    ]
    if not dated:
        rotation.undated.append(domain)
        return
    newest = max(dated, key=lambda one: one.created_at)
    if newest.created_at > now - policy.older_than:
        return
    registered = {registration.key.selector for registration in registrations}
    open_selectors = unanswered - registered
    used = registered | open_selectors
    rotation.successors.append(_successor(domain, newest.registration, used, policy))
    if open_selectors:
        rotation.unanswered.append(domain)


class _Dated(NamedTuple):
    created_at: datetime
    registration: Registration


def _starts_later(registration: Registration, now: datetime) -> bool:
    start = registration.starts_at
    return start is not None and start > now


def _successor(
    domain: str, newest: Registration, used: set[str], policy: RotationPolicy
) -> DomainSpec:
    """Its fields are all set, so that the defaults of a profile change nothing."""
    preferred = policy.selector_for(domain)
    numbered = (f"{preferred}-{number}" for number in itertools.count(2))
    selectors = itertools.chain([preferred], numbered)
    return DomainSpec(
        domain,
        next(selector for selector in selectors if selector.lower() not in used),
        policy.key_len,
        policy.start_date,
        newest.default or None,
        enable=True,
    )


def _require_fit(successors: Iterable[DomainSpec]) -> None:
    too_long = [
        spec.sign_domain
        for spec in successors
        if key_name_length(spec.sign_domain, spec.selector) > MAX_NAME
        or max(map(len, (spec.selector or "").split("."))) > MAX_LABEL
    ]
    if too_long:
        raise UsageError(
            f"in --selector: the selector is too long for {', '.join(too_long)}",
            hint=f"SELECTOR._domainkey.DOMAIN may have at most {MAX_NAME} octets, and a label "
            f"{MAX_LABEL}: use a shorter template",
        )
