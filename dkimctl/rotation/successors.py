"""Successors of old keys: which signing domains are due, and what to register for them."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey
from dkimctl.specs.names import MAX_LABEL, MAX_NAME, key_name_length

_MINUTE = timedelta(minutes=1)


class RotationPolicy(NamedTuple):
    """When a key is due, and what its successor is to be.

    `start_date` is as in DomainSpec. `selector_of` gives the selector that a signing domain is to
    have, if it is free.
    """

    older_than: timedelta
    start_date: str
    key_len: int
    selector_of: Callable[[str], str]


class Rotation(NamedTuple):
    """The successors to register, by signing domain, and what to tell of other domains.

    `undated`: nothing says how old their keys are. `unanswered`: due, though for some selector
    a request was sent that nobody answered.
    """

    successors: list[DomainSpec]
    undated: list[str]
    unanswered: list[str]


def start_date(now: datetime, start_in: timedelta) -> str:
    """The first full minute once `start_in` is over: `YYYY-MM-DDThh:mm+00:00`."""
    start = (now + start_in).astimezone(UTC)
    minute = start.replace(second=0, microsecond=0)
    return (minute if minute == start else minute + _MINUTE).isoformat(timespec="minutes")


def find_successors(
    registrations: Iterable[Registration],
    pending: Iterable[RegistrationKey],
    now: datetime,
    terms: RotationPolicy,
) -> Rotation:
    """Find what is due among the domains of `registrations`, of which all are to be there.

    `pending` are the keys of requests without answer. Raises
    UsageError that names the domains for which a selector is too long.
    """
    by_domain: dict[str, list[Registration]] = {}
    for found in registrations:
        by_domain.setdefault(found.key.sign_domain, []).append(found)
    asked: dict[str, list[str]] = {}
    for key in pending:
        asked.setdefault(key.sign_domain, []).append(key.selector)
    rotation = Rotation([], [], [])
    for domain, of_domain in by_domain.items():
        _consider(domain, of_domain, asked.get(domain, []), now, terms, rotation)
    _require_fit(rotation.successors)
    return rotation


def _consider(
    domain: str,
    of_domain: Sequence[Registration],
    asked: Sequence[str],
    now: datetime,
    terms: RotationPolicy,
    rotation: Rotation,
) -> None:
    """Put one signing domain where it belongs, if anywhere."""
    in_use = [found for found in of_domain if found.signs]
    if not in_use or any(_is_to_come(found, now) for found in in_use):
        return
    dated = [(made, found) for found in in_use if (made := found.created_at) is not None]
    if not dated:
        rotation.undated.append(domain)
        return
    made, newest = max(dated, key=lambda pair: pair[0])
    if made > now - terms.older_than:
        return
    registered = {found.key.selector for found in of_domain}
    unanswered = set(asked) - registered
    rotation.successors.append(_successor(domain, newest, registered | unanswered, terms))
    if unanswered:
        rotation.unanswered.append(domain)


def _is_to_come(found: Registration, now: datetime) -> bool:
    start = found.starts_at
    return start is not None and start > now


def _successor(
    domain: str, newest: Registration, used: set[str], terms: RotationPolicy
) -> DomainSpec:
    """What is stated holds whatever the defaults of a profile are."""
    wanted = terms.selector_of(domain)
    numbered = (f"{wanted}-{number}" for number in itertools.count(2))
    names = itertools.chain([wanted], numbered)
    return DomainSpec(
        domain,
        next(name for name in names if name.lower() not in used),
        terms.key_len,
        terms.start_date,
        newest.default or None,
        enable=True,
    )


def _require_fit(successors: Iterable[DomainSpec]) -> None:
    wrong = [
        spec.sign_domain
        for spec in successors
        if key_name_length(spec.sign_domain, spec.selector) > MAX_NAME
        or max(map(len, (spec.selector or "").split("."))) > MAX_LABEL
    ]
    if wrong:
        raise UsageError(
            f"in --selector: the selector is too long for {', '.join(wrong)}",
            hint=f"SELECTOR._domainkey.DOMAIN has at most {MAX_NAME} octets, and a label "
            f"{MAX_LABEL}: use a shorter template",
        )
