"""Successors of old keys: which keys are due, and what to register in their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import MAX_NAME, is_name
from dkimctl.errors import UsageError
from dkimctl.models.keys import KeyHistory
from dkimctl.models.registration import (
    DomainSpec,
    Registration,
    RegistrationKey,
    by_signing_domain,
    key_of,
)
from dkimctl.rotation.retirement import Histories
from dkimctl.settings.config import RotationSettings
from dkimctl.specs.names import MAX_LABEL, SelectorTemplate, key_name_length

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection

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
        for newest in newest_keys:
            rotation.successors.append(_successor(domain, newest, used, policy))
            used.add(rotation.successors[-1].key.selector)
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
    begun = _read_begun(ledger, {one.key for one in registrations})
    due = _DueKeys(settings, begun, histories, now)
    closed = (one.key for one in ledger.closed_keys())
    used = _by_domain([*begun.successors.values(), *begun.unanswered, *closed])
    selected = {one.key.sign_domain for one in selection.pick(ledger.ours())}
    for domain, of_domain in by_signing_domain(registrations).items():
        if domain in selected:
            due.add_domain(of_domain, used.get(domain, ()))
    registered_today = sum(
        one.created_at is not None
        and one.created_at.date() == now.astimezone(UTC).date()
        and histories.get(one.key, KeyHistory()).replaces is not None
        for one in registrations
    )
    return due.within(settings.limit - registered_today)


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


class _Begun(NamedTuple):
    """Keys that earlier runs began to register, and that are not, as far as the ledger knows."""

    successors: Mapping[RegistrationKey, RegistrationKey]  # by the key that each replaces
    unanswered: Collection[RegistrationKey]  # those that may have been sent
    #: Those of them that replace no key, so that it is not known what was asked; by domain.
    foreign: Mapping[str, RegistrationKey]

    def is_unanswered(self, old: RegistrationKey) -> bool:
        """Whether a successor of this key may have been sent."""
        return self.successors.get(old) in self.unanswered


def _read_begun(ledger: Ledger, registered: Collection[RegistrationKey]) -> _Begun:
    # Keys that are registered have open requests, too, if a refresh got no answer.
    unanswered = {intent.key for intent in ledger.intents()}.difference(registered)
    begun = ledger.begun_successors()
    # Of several for one key, the one that may be registered.
    order = sorted(begun, key=lambda key: key in unanswered)
    successors = {key_of(key.sign_domain, begun[key]): key for key in order}
    foreign = {key.sign_domain: key for key in unanswered if key not in begun}
    return _Begun(successors, unanswered, foreign)


class _DueKeys:
    """Gathers the successors of keys that are due."""

    def __init__(
        self, settings: RotationSettings, begun: _Begun, histories: Histories, now: datetime
    ) -> None:
        self._settings = settings
        # What `spec_of` makes counts for all but the selector.
        template = SelectorTemplate(_TEMPLATE, now.astimezone(UTC))
        start = start_date(now, settings.lead)
        self._policy = RotationPolicy(settings.max_age, start, _KEY_LEN, template.selector)
        self._begun = begun
        self._histories = histories
        self._now = now
        self._settling: list[DomainSpec] = []
        self._new: list[tuple[datetime, DomainSpec]] = []
        self._held: list[HeldKey] = []

    def add_domain(
        self, of_domain: Sequence[Registration], used: Sequence[RegistrationKey]
    ) -> None:
        """Take in a domain with all its registrations; `used` are other keys that it has had."""
        for old in of_domain:
            if self._begun.is_unanswered(old.key):
                # If the key has got another successor meanwhile, this one is only to be found out,
                # since a new key is of no use: what is registered stays as it is (409, interface
                # 7.3).
                selector = self._begun.successors[old.key].selector
                has_other = any(one.signs for one in _made_for(old, of_domain, self._histories))
                spec = spec_of(old, selector, self._settings, self._now)
                self._settling.append(spec._replace(enable=not has_other))
        try:
            rotation = find_successors(of_domain, used, self._now, self._policy)
        except UsageError as error:
            self._hold(of_domain[-1], error.message.removeprefix("in --selector: "))
            return
        if rotation.undated:
            self._hold(of_domain[-1], "the age of its keys is not known")
        self._hold_if_late(of_domain)
        for spec in rotation.successors:
            line = (one for one in of_domain if one.signs and one.third_party == spec.default)
            newest = newest_of(line)
            if newest is not None and not self._begun.is_unanswered(newest.key):
                self._add(newest, spec.selector, of_domain)

    def within(self, allowed: int) -> DueSuccessors:
        """The successors, of which at most `allowed` are new on this day."""
        left = max(0, allowed - len(self._settling))
        specs = [spec for _, spec in sorted(self._new, key=lambda one: one[0])]
        postponed = max(0, len(specs) - left)
        return DueSuccessors([*self._settling, *specs[:left]], self._held, postponed)

    def _add(
        self, old: Registration, selector: str | None, of_domain: Sequence[Registration]
    ) -> None:
        foreign = self._begun.foreign.get(old.key.sign_domain)
        successors = _made_for(old, of_domain, self._histories)
        disabled = next((one for one in successors if not one.signs), None)
        if foreign is not None:
            name = foreign.selector or "chosen by the service"
            self._hold(
                old,
                f"a request for another selector ({name}) was never answered: register the file "
                "of that run again",
            )
        elif disabled is not None:
            self._hold(
                old,
                f"its successor {disabled.selector} is disabled at the service: enable it there, "
                "then `dkimctl register --refresh FILE`",
            )
        else:
            begun = self._begun.successors.get(old.key)
            spec = spec_of(old, begun.selector if begun else selector, self._settings, self._now)
            self._new.append((old.created_at or self._now, spec))

    def _hold_if_late(self, of_domain: Sequence[Registration]) -> None:
        """Hold keys that are due, and whose successor starts long after a new one would."""
        latest = self._now + 2 * self._settings.lead
        for line in lines_of(of_domain):
            starts = {one: one.starts_at for one in line}
            later = {one: at for one, at in starts.items() if at is not None and at > self._now}
            newest = newest_of(one for one in line if one not in later)
            if not later or newest is None or min(later.values()) <= latest:
                continue
            if _is_older(newest, self._settings.max_age, self._now):
                next_ = min(later, key=later.__getitem__)
                self._hold(
                    newest,
                    f"{next_.selector}, which follows it, does not start before "
                    f"{later[next_].date()}: register another one with an earlier start_date",
                )

    def _hold(self, registration: Registration, reason: str) -> None:
        self._held.append(HeldKey(registration, reason))


def _made_for(
    old: Registration, of_domain: Iterable[Registration], histories: Histories
) -> Iterator[Registration]:
    """Our keys that were made to replace `old`."""
    for one in of_domain:
        replaces = histories.get(one.key, KeyHistory()).replaces or ""
        if replaces.lower() == old.key.selector and not one.is_taken:
            yield one
