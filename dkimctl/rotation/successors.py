"""Successors of old keys: which keys are due, and what to register in their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import MAX_NAME, is_name
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

    Keys of one domain that differ in `default` have successors of their own.

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
        closed=[closed.key for closed in ledger.closed_keys()],
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
    *,
    closed: Iterable[RegistrationKey] = (),
) -> Rotation:
    """The successors for the domains of `registrations`, which are all those of their domains.

    `unanswered` are the keys of requests without an answer, `closed` those that were removed. Their
    selectors are not used again. Raises UsageError that names the domains for which a selector is
    too long.
    """
    open_selectors, closed_selectors = _by_domain(unanswered), _by_domain(closed)
    rotation = Rotation([], [], [])
    for domain, of_domain in by_signing_domain(registrations).items():
        registered = {registration.key.selector for registration in of_domain}
        still_open = open_selectors.get(domain, set()) - registered
        used = registered | still_open | closed_selectors.get(domain, set())
        before = len(rotation.successors)
        _add_domain(rotation, domain, of_domain, used, now, policy)
        if still_open and len(rotation.successors) > before:
            rotation.unanswered.append(domain)
    _require_fit(rotation.successors)
    return rotation


def _by_domain(keys: Iterable[RegistrationKey]) -> dict[str, set[str]]:
    selectors: dict[str, set[str]] = {}
    for key in keys:
        selectors.setdefault(key.sign_domain, set()).add(key.selector)
    return selectors


def _add_domain(
    rotation: Rotation,
    domain: str,
    registrations: Sequence[Registration],
    used: set[str],
    now: datetime,
    policy: RotationPolicy,
) -> None:
    """Add the successors of one signing domain, as far as its keys are due or undated."""
    for line in lines_of(registrations):
        if any(_starts_later(registration, now) for registration in line):
            continue
        newest = newest_of(line)
        if newest is None:
            _append_once(rotation.undated, domain)
        elif newest.created_at <= now - policy.older_than:
            successor = _successor(domain, newest.registration, used, policy)
            rotation.successors.append(successor)
            used.add(successor.key.selector)


class Dated(NamedTuple):
    """A registration, and when its key was made."""

    created_at: datetime
    registration: Registration


def lines_of(registrations: Iterable[Registration]) -> list[list[Registration]]:
    """The keys of a domain that sign, by their `default`: no key replaces one for other mail."""
    lines: dict[int, list[Registration]] = {}
    for registration in registrations:
        if registration.signs:
            lines.setdefault(registration.third_party, []).append(registration)
    return list(lines.values())


def newest_of(line: Iterable[Registration]) -> Dated | None:
    """The key that was registered last; None if no key has a date."""
    dated = [
        Dated(created_at, registration)
        for registration in line
        if (created_at := registration.created_at) is not None
    ]
    return max(dated, key=lambda one: one.created_at, default=None)


def _starts_later(registration: Registration, now: datetime) -> bool:
    start = registration.starts_at
    return start is not None and start > now


def _append_once(domains: list[str], domain: str) -> None:
    if domains[-1:] != [domain]:
        domains.append(domain)


def _successor(
    domain: str, newest: Registration, used: set[str], policy: RotationPolicy
) -> DomainSpec:
    """The same as `newest`, but for its selector, start and key length.

    Its fields are all set, so that the defaults of a profile change nothing.
    """
    preferred = policy.selector_for(domain)
    numbered = (f"{preferred}-{number}" for number in itertools.count(2))
    selectors = itertools.chain([preferred], numbered)
    old = newest.selector or ""
    return DomainSpec(
        domain,
        next(selector for selector in selectors if selector.lower() not in used),
        policy.key_len,
        policy.start_date,
        newest.third_party,
        enable=True,
        replaces=old if is_name(old) else None,  # spec files take no other
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
