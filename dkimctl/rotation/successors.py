"""Successors of old keys: which keys are due, and what to register in their place."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import NEVER, DomainSpec, Registration, key_of
from dkimctl.names import MAX_LABEL, MAX_NAME, Selection, is_name, key_name_length
from dkimctl.settings.rotation import Policies, RotationSettings

_KEY_LEN = 2048  # bits, at least, of what `rotate run` registers (RFC 8301 section 3.2)
FEW_LEFT = 2  # selectors in the pool of a domain
_MAX_LATENESS = timedelta(days=1)  # between two runs


class RotationPolicy(NamedTuple):
    """When a key is due, and what its successor is, as the options of `rotate` say."""

    older_than: timedelta | None  # None: as `policies` say
    start_date: str  # as in DomainSpec
    key_len: int
    selector_for: Callable[[str], str]  # the preferred selector for a signing domain
    policies: Policies = Policies()


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

    Raises UsageError that names the domains for which a selector is too long.
    """
    rotation, too_long, is_empty = Rotation([], [], []), [], True
    for domain in ledger.domains():
        if not _is_selected(domain, selection):
            continue
        is_empty = False
        unanswered = _unanswered(domain)
        used = {*unanswered, *(closed.key.selector for closed in domain.closed)}
        preferred = policy.selector_for(domain.sign_domain)
        age = policy.older_than
        if age is None:
            age = policy.policies.of(domain.sign_domain).max_age
        due, is_undated = _with_new_selectors(domain.histories, used, preferred, now - age, now)
        for newest, selector in due:
            old = newest.selector or ""
            # Its fields are all set, so that the defaults of a profile change nothing.
            spec = DomainSpec(
                newest.key.sign_domain,
                selector,
                policy.key_len,
                policy.start_date,
                newest.third_party,
                enable=True,
                replaces=old if is_name(old) else None,  # spec files take no other
            )
            rotation.successors.append(spec)
            if _is_too_long(spec.sign_domain, selector):
                too_long.append(spec.sign_domain)
        if is_undated:
            rotation.undated.append(domain.sign_domain)
        if unanswered and due:
            rotation.unanswered.append(domain.sign_domain)
    if too_long:
        raise UsageError(
            f"in --selector: the selector is too long for {', '.join(too_long)}",
            hint=f"SELECTOR._domainkey.DOMAIN may have at most {MAX_NAME} octets, and a label "
            f"{MAX_LABEL}: use a shorter template",
        )
    return None if is_empty else rotation


class DueKey(NamedTuple):
    """A key that is due, and its successor; without one, why it waits for the user's decision."""

    registration: Registration
    spec: DomainSpec | None = None
    reason: str = ""
    is_begun: bool = False  # the request for that successor got no answer


class DueKeys(NamedTuple):
    """What `rotate run` registers now, the successor of the oldest key first."""

    specs: Sequence[DomainSpec]
    undecided: Sequence[DueKey]  # they get no successor until the user decides
    postponed: Sequence[DomainSpec]  # they are due as well, but beyond the limit of the day
    #: A key of each domain whose pool has FEW_LEFT selectors or fewer, with how many.
    low: Mapping[Registration, int] = {}


def find_due(ledger: Ledger, selection: Selection, policies: Policies, now: datetime) -> DueKeys:
    """What `rotate run` registers now for the selected domains.

    A successor that an earlier run has begun keeps its selector: the service answers with the
    registration, if that run has made one.
    """
    due: list[DueKey] = []
    low: dict[Registration, int] = {}
    used: Counter[RotationSettings] = Counter()  # of the limit of each policy, today
    for domain in ledger.domains():
        policy = policies.of(domain.sign_domain)
        used[policy] += sum(
            registration.created_at is not None
            and registration.created_at.date() == now.astimezone(UTC).date()
            and history.replaces is not None
            for registration, history in domain.histories.items()
        )
        if _is_selected(domain, selection):
            due += due_of(domain, policies, now)
            left = selectors_left(domain, policies)
            if left is not None and left <= FEW_LEFT:
                *_, low_key = domain.histories
                low[low_key] = left
    specs, postponed = list[DomainSpec](), list[DomainSpec]()
    for key in sorted(
        due, key=lambda key: (not key.is_begun, key.registration.created_at or now)
    ):  # fmt: skip
        if key.spec is not None:
            policy = policies.of(key.spec.sign_domain)
            used[policy] += 1
            is_now = key.is_begun or used[policy] <= policy.limit
            (specs if is_now else postponed).append(key.spec)
    return DueKeys(specs, [key for key in due if key.spec is None], postponed, low)


def selectors_left(domain: DomainKeys, policies: Policies) -> int | None:
    """How many of its pool no key has had; None: it is in no pool."""
    pool = policies.pool_of(domain.sign_domain)
    return None if pool is None else len(pool.free(domain.selectors))


def few_left(left: int, sign_domain: str) -> str:
    """What to say of a domain whose pool is about to run out."""
    count = {0: "no selector is", 1: "1 selector is"}.get(left, f"{left} selectors are")
    how = "raise `count` of its `delegation` in the config file, then `dkimctl handoff --delegate"
    return f"{count} left in its pool: {how} {sign_domain}`"


def due_of(domain: DomainKeys, policies: Policies, now: datetime) -> Iterator[DueKey]:
    """The keys of a domain that are due, whatever the limit of `rotate run`."""
    histories, settings = domain.histories, policies.of(domain.sign_domain)
    if not histories:
        return
    unanswered = {key_of(domain.sign_domain, selector) for selector in _unanswered(domain)}
    # By the key that each replaces; of several for one key, the one that may be registered.
    order = sorted(domain.begun, key=lambda key: key in unanswered)
    begun = {key_of(key.sign_domain, domain.begun[key]): key for key in order}
    made_for: dict[str, list[Registration]] = {}  # our keys, by the selectors that they replace
    for registration, history in histories.items():
        if not registration.is_taken:
            made_for.setdefault((history.replaces or "").lower(), []).append(registration)
    for old in histories:
        successor = begun.get(old.key)
        if successor is not None and successor in unanswered:
            # If the key has got another successor meanwhile, this one is only to be found out,
            # since a new key is of no use: what is registered stays as it is (409, interface 7.3).
            has_other = any(other.signs for other in made_for.get(old.key.selector, ()))
            spec = spec_of(old, successor.selector, settings, now)
            yield DueKey(old, spec._replace(enable=not has_other), is_begun=True)

    used = {key.selector for key in (*begun.values(), *unanswered)}
    used |= {closed.key.selector for closed in domain.closed}
    preferred, made_before = f"{now.astimezone(UTC):s%Y%m%d}", now - settings.max_age
    due, is_undated = _with_new_selectors(histories, used, preferred, made_before, now)
    *_, last = histories
    if any(_is_too_long(domain.sign_domain, selector) for _, selector in due):
        yield DueKey(last, reason=f"the selector is too long for {domain.sign_domain}")
        return
    if is_undated:
        yield DueKey(last, reason="the age of its keys is not known")
    yield from _with_late_successors(histories, settings, now)
    # Requests that replace no key, so that it is not known what was asked.
    foreign = next((key for key in unanswered if key not in domain.begun), None)
    for newest, selector in due:
        successor = begun.get(newest.key)
        if successor in unanswered:
            continue
        successors = made_for.get(newest.key.selector, ())
        disabled = next((other for other in successors if not other.signs), None)
        if foreign is not None:
            name = foreign.selector or "chosen by the service"
            reason = f"a request for another selector ({name}) was never answered: register "
            yield DueKey(newest, reason=f"{reason}the file of that run again")
        elif disabled is not None:
            reason = f"its successor {disabled.selector} is disabled at the service: enable it "
            yield DueKey(newest, reason=f"{reason}there, then `dkimctl register --refresh FILE`")
        else:
            chosen = successor.selector if successor else selector
            yield DueKey(newest, spec_of(newest, chosen, settings, now))


def _is_selected(domain: DomainKeys, selection: Selection) -> bool:
    """Whether a key of ours is selected; the selection notes all of them."""
    ours = (registration for registration in domain.histories if not registration.is_taken)
    return bool(list(selection.pick(ours)))


def _unanswered(domain: DomainKeys) -> set[str]:
    """The selectors of requests without an answer; known keys have some after a refresh."""
    known = {registration.key.selector for registration in domain.histories}
    known |= {closed.key.selector for closed in domain.closed}
    return {intent.key.selector for intent in domain.intents} - known


def _with_new_selectors(
    registrations: Collection[Registration],
    used: set[str],
    preferred: str,
    made_before: datetime,
    now: datetime,
) -> tuple[list[tuple[Registration, str]], bool]:
    """The keys of a domain that are due, each with the selector of a successor.

    Selectors that are `used`, and those that are registered, are not used again. Also whether the
    age of some is not known.
    """
    due: list[tuple[Registration, str]] = []
    is_undated = False
    for line in lines_of(registrations):
        if any((registration.starts_at or now) > now for registration in line):
            continue
        newest = newest_of(line)
        if newest is None:
            is_undated = True
        elif _is_older(newest, made_before):
            used |= {registration.key.selector for registration in registrations}
            names = (f"{preferred}-{number}" for number in itertools.count(2))
            free = (
                name for name in itertools.chain([preferred], names) if name.lower() not in used
            )
            selector = next(free)
            used.add(selector.lower())
            due.append((newest, selector))
    return due, is_undated


def _is_too_long(sign_domain: str, selector: str) -> bool:
    length = key_name_length(sign_domain, selector)
    return length > MAX_NAME or max(map(len, selector.split("."))) > MAX_LABEL


def _is_older(registration: Registration, time: datetime) -> bool:
    return registration.created_at is not None and registration.created_at <= time


def start_date(now: datetime, start_in: timedelta) -> str:
    """The first full minute after `start_in` has passed: `YYYY-MM-DDThh:mm+00:00`."""
    start = (now + start_in).astimezone(UTC)
    minute = start.replace(second=0, microsecond=0)
    return (minute + timedelta(minutes=minute != start)).isoformat(timespec="minutes")


def lines_of(registrations: Iterable[Registration]) -> list[list[Registration]]:
    """The keys of a domain that sign, by their `default`: no key replaces one for other mail."""
    lines: dict[int, list[Registration]] = {}
    for registration in registrations:
        if registration.signs:
            lines.setdefault(registration.third_party, []).append(registration)
    return list(lines.values())


def newest_of(line: Iterable[Registration]) -> Registration | None:
    """The key that was registered last; None if no key has a date."""
    dated = [registration for registration in line if registration.created_at is not None]
    return max(dated, key=lambda registration: registration.created_at or NEVER, default=None)


def _with_late_successors(
    of_domain: Iterable[Registration], settings: RotationSettings, now: datetime
) -> Iterator[DueKey]:
    """The keys that are due, and whose successor starts long after a new one would."""
    for line in lines_of(of_domain):
        later = [registration for registration in line if (registration.starts_at or now) > now]
        newest = newest_of(registration for registration in line if registration not in later)
        if not later or newest is None or not _is_older(newest, now - settings.max_age):
            continue
        start, selector = min((each.starts_at or NEVER, each.selector or "") for each in later)
        if start > now + 2 * settings.lead:
            reason = f"{selector}, which follows it, does not start before {start.date()}: "
            yield DueKey(newest, reason=f"{reason}register another one with an earlier start_date")


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
