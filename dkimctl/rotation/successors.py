"""Successors of old keys: which keys are due, and what to register in their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models import (
    DomainSpec,
    KeyHistory,
    Registration,
    RegistrationKey,
    by_signing_domain,
    key_of,
)
from dkimctl.names import MAX_LABEL, MAX_NAME, SelectorTemplate, is_name, key_name_length
from dkimctl.rotation.retirement import Histories
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.names import Selection

_MINUTE = timedelta(minutes=1)
# Of the successors that `rotate run` registers.
_TEMPLATE = "s%Y%m%d"
_KEY_LEN = 2048  # bits, at least (RFC 8301 section 3.2)
_MAX_LATENESS = timedelta(days=1)  # between two runs


class RotationPolicy(NamedTuple):
    """When a key is due, and what its successor is."""

    older_than: timedelta
    start_date: str  # as in DomainSpec
    key_len: int
    selector_for: Callable[[str], str]  # the preferred selector for a signing domain


class Rotation(NamedTuple):
    """The successors to register, by signing domain, and domains to warn about.

    Keys of one domain that differ in `default` have successors of their own.
    """

    successors: list[DomainSpec]
    undated: list[str]  # the age of their keys is not known
    unanswered: list[str]  # due, although a request for another selector was never answered


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
    open_keys, closed_keys = _by_domain(unanswered), _by_domain(closed)
    rotation = Rotation([], [], [])
    for domain, of_domain in by_signing_domain(registrations).items():
        registered = {registration.key.selector for registration in of_domain}
        still_open = {key.selector for key in open_keys.get(domain, ())} - registered
        used = registered | still_open | {key.selector for key in closed_keys.get(domain, ())}
        due = [*_due_of(of_domain, now, policy)]
        if None in due:
            rotation.undated.append(domain)
        newest_keys = [newest for newest in due if newest is not None]
        preferred = policy.selector_for(domain)
        for newest in newest_keys:
            selector, number = preferred, itertools.count(2)
            while selector.lower() in used:
                selector = f"{preferred}-{next(number)}"
            used.add(selector.lower())
            old = newest.selector or ""
            # Its fields are all set, so that the defaults of a profile change nothing.
            spec = DomainSpec(
                domain,
                selector,
                policy.key_len,
                policy.start_date,
                newest.third_party,
                enable=True,
                replaces=old if is_name(old) else None,  # spec files take no other
            )
            rotation.successors.append(spec)
        if still_open and newest_keys:
            rotation.unanswered.append(domain)
    too_long = [
        spec.sign_domain
        for spec in rotation.successors
        if key_name_length(spec.sign_domain, spec.selector) > MAX_NAME
        or max(map(len, (spec.selector or "").split("."))) > MAX_LABEL
    ]
    if too_long:
        raise UsageError(
            f"in --selector: the selector is too long for {', '.join(too_long)}",
            hint=f"SELECTOR._domainkey.DOMAIN may have at most {MAX_NAME} octets, and a label "
            f"{MAX_LABEL}: use a shorter template",
        )
    return rotation


def _due_of(
    of_domain: Iterable[Registration], now: datetime, policy: RotationPolicy
) -> Iterator[Registration | None]:
    """The keys of a domain that are due; None for a line of keys whose age is not known."""
    for line in lines_of(of_domain):
        starts = (registration.starts_at for registration in line)
        if any(start is not None and start > now for start in starts):
            continue
        newest = newest_of(line)
        if newest is None or _is_older(newest, policy.older_than, now):
            yield newest


def _is_older(registration: Registration, age: timedelta, now: datetime) -> bool:
    return registration.created_at is not None and registration.created_at <= now - age


def _by_domain(keys: Iterable[RegistrationKey]) -> dict[str, list[RegistrationKey]]:
    of_domain: dict[str, list[RegistrationKey]] = {}
    for key in keys:
        of_domain.setdefault(key.sign_domain, []).append(key)
    return of_domain


def lines_of(registrations: Iterable[Registration]) -> list[list[Registration]]:
    """The keys of a domain that sign, by their `default`: no key replaces one for other mail."""
    lines: dict[int, list[Registration]] = {}
    for registration in registrations:
        if registration.signs:
            lines.setdefault(registration.third_party, []).append(registration)
    return list(lines.values())


def newest_of(line: Iterable[Registration]) -> Registration | None:
    """The key that was registered last; None if no key has a date."""
    dated = ((one.created_at, one) for one in line)
    known = [(at, one) for at, one in dated if at is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


class HeldKey(NamedTuple):
    """A key that is due, and gets no successor until the user decides."""

    registration: Registration
    reason: str


class DueSuccessors(NamedTuple):
    """The successors to register now, that of the oldest key first."""

    specs: Sequence[DomainSpec]
    held: Sequence[HeldKey] = ()
    postponed: int = 0  # how many more are due than the limit of the day allows


def find_due(
    ledger: Ledger, selection: Selection, settings: RotationSettings, now: datetime
) -> DueSuccessors:
    """What `rotate run` registers now for the selected domains.

    A successor that an earlier run has begun keeps its selector: the service answers with the
    registration, if that run has made one.
    """
    registrations, histories = list(ledger.all()), ledger.histories()
    # Keys that are registered have open requests, too, if a refresh got no answer.
    registered = {one.key for one in registrations}
    unanswered = {intent.key for intent in ledger.intents()}.difference(registered)
    replaced = ledger.begun_successors()
    # By the key that each replaces; of several for one key, the one that may be registered.
    order = sorted(replaced, key=lambda key: key in unanswered)
    begun = {key_of(key.sign_domain, replaced[key]): key for key in order}
    # Those that replace no key, so that it is not known what was asked; by domain.
    foreign = {key.sign_domain: key for key in unanswered if key not in replaced}
    used = _by_domain([*begun.values(), *unanswered, *(one.key for one in ledger.closed_keys())])
    selected = {one.key.sign_domain for one in selection.pick(ledger.ours())}
    # What `spec_of` makes counts for all but the selector.
    template = SelectorTemplate(_TEMPLATE, now.astimezone(UTC))
    start = start_date(now, settings.lead)
    policy = RotationPolicy(settings.max_age, start, _KEY_LEN, template.selector)

    held: list[HeldKey] = []
    settling: list[DomainSpec] = []  # their requests got no answer
    new: list[tuple[datetime, DomainSpec]] = []
    for domain, of_domain in by_signing_domain(registrations).items():
        if domain not in selected:
            continue
        made_for = _by_replaced(of_domain, histories)
        for old in of_domain:
            successor = begun.get(old.key)
            if successor is None or successor not in unanswered:
                continue
            # If the key has got another successor meanwhile, this one is only to be found out,
            # since a new key is of no use: what is registered stays as it is (409, interface 7.3).
            has_other = any(one.signs for one in made_for.get(old.key.selector, ()))
            spec = spec_of(old, successor.selector, settings, now)
            settling.append(spec._replace(enable=not has_other))
        try:
            rotation = find_successors(of_domain, used.get(domain, ()), now, policy)
        except UsageError as error:
            reason = error.message.removeprefix("in --selector: ")
            held.append(HeldKey(of_domain[-1], reason))
            continue
        if rotation.undated:
            held.append(HeldKey(of_domain[-1], "the age of its keys is not known"))
        held += _with_late_successors(of_domain, settings, now)
        for spec in rotation.successors:
            line = (one for one in of_domain if one.signs and one.third_party == spec.default)
            newest = newest_of(line)
            if newest is None or begun.get(newest.key) in unanswered:
                continue
            successors = made_for.get(newest.key.selector, ())
            disabled = next((one for one in successors if not one.signs), None)
            if domain in foreign:
                name = foreign[domain].selector or "chosen by the service"
                reason = f"a request for another selector ({name}) was never answered: register "
                held.append(HeldKey(newest, f"{reason}the file of that run again"))
            elif disabled is not None:
                reason = f"its successor {disabled.selector} is disabled at the service: enable it "
                reason += "there, then `dkimctl register --refresh FILE`"
                held.append(HeldKey(newest, reason))
            else:
                successor = begun.get(newest.key)
                selector = successor.selector if successor else spec.selector
                spec_now = spec_of(newest, selector, settings, now)
                new.append((newest.created_at or now, spec_now))

    registered_today = sum(
        one.created_at is not None
        and one.created_at.date() == now.astimezone(UTC).date()
        and histories.get(one.key, KeyHistory()).replaces is not None
        for one in registrations
    )
    left = max(0, settings.limit - registered_today - len(settling))
    specs = [spec for _, spec in sorted(new, key=lambda one: one[0])]
    return DueSuccessors([*settling, *specs[:left]], held, max(0, len(specs) - left))


def _by_replaced(
    of_domain: Iterable[Registration], histories: Histories
) -> dict[str, list[Registration]]:
    """Our keys, by the selectors of those that they were made to replace."""
    made_for: dict[str, list[Registration]] = {}
    for one in of_domain:
        if not one.is_taken:
            replaces = histories.get(one.key, KeyHistory()).replaces or ""
            made_for.setdefault(replaces.lower(), []).append(one)
    return made_for


def _with_late_successors(
    of_domain: Iterable[Registration], settings: RotationSettings, now: datetime
) -> Iterator[HeldKey]:
    """The keys that are due, and whose successor starts long after a new one would."""
    for line in lines_of(of_domain):
        starts = {one: one.starts_at for one in line}
        later = {one: at for one, at in starts.items() if at is not None and at > now}
        newest = newest_of(one for one in line if one not in later)
        if not later or newest is None or min(later.values()) <= now + 2 * settings.lead:
            continue
        if _is_older(newest, settings.max_age, now):
            next_ = min(later, key=later.__getitem__)
            yield HeldKey(
                newest,
                f"{next_.selector}, which follows it, does not start before "
                f"{later[next_].date()}: register another one with an earlier start_date",
            )


def spec_of(
    old: Registration, selector: str | None, settings: RotationSettings, now: datetime
) -> DomainSpec:
    """A successor of `old`. Its fields are all set: the defaults of a profile change nothing.

    A run that is late leaves less time, by up to a day: so old keys sign no longer than with
    punctual runs.
    """
    late = now - (old.created_at or now) - settings.max_age
    lateness = max(timedelta(), min(late, _MAX_LATENESS, settings.lead / 4))
    return DomainSpec(
        old.sign_domain,
        selector,
        max(_KEY_LEN, old.key_len or 0),
        start_date(now, settings.lead - lateness),
        old.third_party,
        enable=True,
        replaces=old.selector,
    )
