"""Successors of old keys: which keys are due, and what to register in their place."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from dkimctl.dkim import record_name
from dkimctl.errors import UsageError
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import NEVER, DomainSpec, Registration, key_of
from dkimctl.names import MAX_LABEL, MAX_NAME, Selection, is_name, selector_template
from dkimctl.settings.rotation import HOW_TO_EXTEND, Policies, RotationSettings

_KEY_LEN = 2048  # bits, at least, of what `rotate run` registers (RFC 8301 section 3.2)
FEW_LEFT = 2  # selectors in the pool of a domain
_DAY = timedelta(days=1)  # at most, between two runs
_SHORTEST = 3 / 4  # of `lead`, by which a successor that is registered late starts earlier


class RotationPolicy(NamedTuple):
    """When a key is due, and what its successor is, as the options of `rotate` say."""

    older_than: timedelta | None  # here and below, None: as `policies` say
    start_date: str  # as in DomainSpec
    key_len: int | None
    selector_for: Callable[[str], str] | None  # the preferred selector for a signing domain
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
        settings, unanswered = policy.policies.of(domain.sign_domain), _unanswered(domain)
        selector_for = policy.selector_for or _selectors_of(settings.selectors, now)
        preferred = selector_for(domain.sign_domain)
        schedules = schedules_of(domain, policy.policies, now)
        if (age := policy.older_than) is not None:
            made = [schedule.newest and schedule.newest.created_at for schedule in schedules]
            dates = (min(date or NEVER, NEVER - age) + age for date in made)
            schedules = [each._replace(due=due) for each, due in zip(schedules, dates, strict=True)]
        due, is_undated = _with_new_selectors(schedules, {*domain.selectors}, preferred, now, now)
        for newest, selector, _ in due:
            # Its fields are all set, so that the defaults of a profile change nothing.
            key_len = policy.key_len or settings.key_len or _KEY_LEN
            asked = key_len, policy.start_date, newest.third_party, True
            old = newest.selector if is_name(newest.selector or "") else None  # as spec files take
            spec = DomainSpec(domain.sign_domain, selector, *asked, replaces=old)
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


class Schedule(NamedTuple):
    """When a line of keys, which sign the same mail, gets a successor: its newest key decides."""

    line: Sequence[Registration]
    newest: Registration | None = None  # that was registered last; None: no key has a date
    due: datetime = NEVER  # when the successor is to be registered
    start: datetime = NEVER  # when it is to start
    end: datetime = NEVER  # when the newest key reaches `max_age`
    frozen: str = ""  # why it cannot start by then


def schedules_of(domain: DomainKeys, policies: Policies, now: datetime) -> list[Schedule]:
    """When each line of the keys of a domain gets a successor."""
    settings = policies.of(domain.sign_domain)
    return [_schedule_of(line, settings, now) for line in lines_of(domain.histories)]


def _schedule_of(
    line: Sequence[Registration], settings: RotationSettings, now: datetime
) -> Schedule:
    newest = newest_of(line)
    begin = newest.created_at if newest else None
    if newest is None or begin is None:
        return Schedule(line)
    due, start, end = _times_of(begin, newest.starts_at or begin, settings)
    due = max([due, *[each.starts_at or due for each in line]])
    due = due if due.tzinfo is UTC else due.astimezone(UTC)
    reason = ""
    if settings.freeze and (thawed := settings.frozen_until(max(due, now))) is not None:
        if due <= now and thawed + _DAY + settings.lead * _SHORTEST > end:
            reason = f"nothing is registered before {thawed.date()} (freeze), but it reaches "
            reason += f"`max_age` on {end.date()}: `dkimctl rotate {newest.sign_domain} "
            reason += "--older-than 0d` prints a successor"
        due = thawed
    return Schedule(line, newest, due, start, end, reason)


@lru_cache(maxsize=1024)  # many keys were registered together
def _times_of(
    begin: datetime, starts: datetime, settings: RotationSettings
) -> tuple[datetime, datetime, datetime]:
    """When a successor is due, when it is to start, and when the key reaches `max_age`.

    The successor starts when the newest key is `max_age` old, and is registered `lead` before.
    Each goes before a freeze if the former would be in one, or the latter too close to one. The age
    counts from the registration, or, of a key that was registered long before it starts, from
    `lead` before its start, or so much less that it signs long enough to be replaced.
    """
    max_age, lead = settings.max_age, settings.lead
    ahead = min(max(lead, lead * _SHORTEST + _DAY), max_age)  # a run a day later is in time
    if starts > begin and starts - begin > min(lead, max_age - ahead):
        begin = (starts - min(lead, max_age - ahead)).astimezone(UTC)
    end = min(begin, NEVER - max_age) + max_age
    start = end = end.replace(second=0, microsecond=0)  # as start dates are
    for frozen, until in reversed(settings.freeze):
        if frozen <= start < until and frozen - _DAY - lead > begin:  # else its life is too short
            start = frozen - _DAY
    due = start - ahead
    for frozen, until in reversed(settings.freeze):
        if frozen < due + _DAY and due < until:
            due = frozen - _DAY
    return due, start, end


class DueKey(NamedTuple):
    """A key that is due, and its successor; without one, why it waits for the user's decision."""

    registration: Registration
    spec: DomainSpec | None = None
    reason: str = ""
    is_begun: bool = False  # the request for that successor got no answer
    due: datetime = NEVER


class DueKeys(NamedTuple):
    """What `rotate run` registers now, the successor of the oldest key first."""

    specs: Sequence[DomainSpec]
    undecided: Sequence[DueKey]  # they get no successor until the user decides
    postponed: Sequence[DomainSpec]  # they are due as well, but beyond the limit of the day
    #: The newest key of each domain whose pool has FEW_LEFT selectors or fewer, with how many.
    low: Mapping[Registration, int] = {}
    limits: Sequence[str] = ()  # that cannot keep up


def find_due(
    domains: Iterable[DomainKeys], selection: Selection, policies: Policies, now: datetime
) -> DueKeys:
    """What `rotate run` registers now for the selected ones of these domains, which are all.

    A successor that an earlier run has begun keeps its selector: the service answers with the
    registration, if that run has made one.
    """
    due: list[DueKey] = []
    low: dict[Registration, int] = {}
    quotas: dict[int, _Quota] = {}  # by the identity of the policy
    today = now.astimezone(UTC).date()
    for domain in domains:
        policy = policies.of(domain.sign_domain)
        if (quota := quotas.get(id(policy))) is None:
            quota = quotas[id(policy)] = _Quota(policy)
        for registration, history in domain.histories.items():
            if history.replaces is not None and (made := registration.created_at) is not None:
                quota.used += made.date() == today
        schedules = schedules_of(domain, policies, now)
        quota.dates += (schedule.due for schedule in schedules)
        if _is_selected(domain, selection):
            if may_be_due(domain, schedules, now):
                due += due_of(domain, policies, now)
            quota.note(min((schedule.due for schedule in schedules), default=NEVER), domain)
            newest, left = selectors_left(domain, policies)
            if newest is not None and left is not None and left <= FEW_LEFT:
                low[newest] = left
    for quota in quotas.values():
        until = _due_until(sorted(quota.dates), quota.policy, now)
        for at, _, domain in quota.coming:
            if now < until >= at:
                early = due_of(domain, policies, now, until)
                due += (key for key in early if now < key.due <= until)
    specs, postponed = list[DomainSpec](), list[DomainSpec]()
    undecided = [key for key in due if key.spec is None]
    due.sort(key=lambda key: (not key.is_begun, key.due, key.registration.created_at or now))
    for key in due:
        if key.spec is not None:
            quota = quotas[id(policies.of(key.spec.sign_domain))]
            quota.used += 1
            if key.is_begun or quota.used <= quota.policy.limit:
                specs.append(key.spec)
            elif key.due <= now:
                postponed.append(key.spec)
    limits = limits_too_low(((each.policy, len(each.dates)) for each in quotas.values()), now)
    return DueKeys(specs, undecided, postponed, low, [*limits])


class _Quota:
    """What a policy allows on a day."""

    def __init__(self, policy: RotationSettings) -> None:
        self.policy = policy
        self.used = 0  # of `limit`, today
        self.dates: list[datetime] = []  # when the successor of each line of keys is due
        self.coming: list[tuple[datetime, int, DomainKeys]] = []  # the first of these

    def note(self, due: datetime, domain: DomainKeys) -> None:
        self.coming.append((due, len(self.dates), domain))
        if len(self.coming) > 2 * self.policy.limit + 1000:  # there may be 100,000
            self.coming = heapq.nsmallest(self.policy.limit, self.coming)


def selectors_left(
    domain: DomainKeys, policies: Policies
) -> tuple[Registration | None, int | None]:
    """Its newest key, and how many selectors of its pool no key has had; None: it is in no pool."""
    pool = policies.pool_of(domain.sign_domain)
    if pool is None:
        return None, None
    newest = newest_of(registration for registration in domain.histories if registration.signs)
    names = pool.names()
    return newest, len(names) - sum(selector in names for selector in domain.selectors)


def few_left(left: int, sign_domain: str) -> str:
    """What to say of a domain whose pool is about to run out."""
    count = "1 selector is" if left else "no selector is"
    return f"{count} left in its pool for a successor: {HOW_TO_EXTEND.format(sign_domain)}"


def _due_until(dates: Sequence[datetime], policy: RotationSettings, now: datetime) -> datetime:
    """The latest of these dates that count as due today, since later `limit` would delay some."""
    today, number, most = now.astimezone(UTC).date(), 0, 0
    for day, of_day in itertools.groupby(dates, datetime.date):
        number += sum(1 for _ in of_day)
        if today < day < NEVER.date():
            begin, end = (datetime(*each.timetuple()[:3], tzinfo=UTC) for each in (today, day))
            days = policy.open_time(begin + _DAY, end + _DAY) // _DAY
            most = max(most, number - policy.limit * days)
    return dates[most - 1] if most and policy.frozen_until(now) is None else now


def limits_too_low(lines: Iterable[tuple[RotationSettings, int]], now: datetime) -> Iterator[str]:
    """Which `limit` cannot keep up with so many lines of keys; each has one key after the other."""
    for policy, count in lines:
        days = max(policy.open_time(now, now + policy.max_age - policy.lead) // _DAY, 1)
        if count > policy.limit * days:
            yield (
                f"`limit: {policy.limit}` a day is too low for {count:,} keys ({policy.covers}), "
                f"which need successors every {days} days: write `limit: {-(-count // days)}`"
            )


def may_be_due(domain: DomainKeys, schedules: Iterable[Schedule], now: datetime) -> bool:
    """Whether `due_of` has any of its keys: few have, and to find out takes as long as all else."""
    return bool(domain.intents or domain.begun) or any(
        schedule.newest is None
        or schedule.due <= now
        or schedule.frozen
        or (len(schedule.line) > 1 and any((key.starts_at or now) > now for key in schedule.line))
        for schedule in schedules
    )


def due_of(
    domain: DomainKeys, policies: Policies, now: datetime, until: datetime | None = None
) -> Iterator[DueKey]:
    """The keys of a domain that are due now, or `until` later, whatever the limit of the day."""
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

    schedules, used = schedules_of(domain, policies, now), {*domain.selectors}
    preferred = _selectors_of(settings.selectors, now)(domain.sign_domain)
    due, is_undated = _with_new_selectors(schedules, used, preferred, now, until or now)
    *_, last = histories
    if any(_is_too_long(domain.sign_domain, selector) for _, selector, _ in due):
        yield DueKey(last, reason=f"the selector is too long for {domain.sign_domain}")
        return
    if is_undated:
        yield DueKey(last, reason="the age of its keys is not known")
    yield from _with_late_successors(histories, settings, now)
    for schedule in schedules:
        if schedule.newest and schedule.frozen:
            yield DueKey(schedule.newest, reason=schedule.frozen)
    # Requests that replace no key, so that it is not known what was asked.
    foreign = next((key for key in unanswered if key not in domain.begun), None)
    for newest, selector, due_at in due:
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
            yield DueKey(newest, spec_of(newest, chosen, settings, now), due=due_at)


def _is_selected(domain: DomainKeys, selection: Selection) -> bool:
    """Whether a key of ours is selected; the selection notes all of them."""
    ours = (registration for registration in domain.histories if not registration.is_taken)
    return bool(list(selection.pick(ours)))


def _unanswered(domain: DomainKeys) -> set[str]:
    """The selectors of requests without an answer; known keys have some after a refresh."""
    known = {registration.key.selector for registration in domain.histories}
    known |= {closed.key.selector for closed in domain.closed}
    return {intent.key.selector for intent in domain.intents} - known


@lru_cache(maxsize=64)
def _selectors_of(template: str, now: datetime) -> Callable[[str], str]:
    return selector_template(template, now.astimezone(UTC), option="selectors")


def _with_new_selectors(
    schedules: Iterable[Schedule], used: set[str], preferred: str, now: datetime, until: datetime
) -> tuple[list[tuple[Registration, str, datetime]], bool]:
    """The keys of a domain that are due `until` then, with the selector of a successor, and when.

    Selectors that are `used` are not used again. Also whether the age of some is not known.
    """
    due: list[tuple[Registration, str, datetime]] = []
    is_undated = False
    for schedule in schedules:
        if any((registration.starts_at or now) > now for registration in schedule.line):
            continue
        if schedule.newest is None:
            is_undated = True
        elif schedule.due <= until:
            selector, numbers = preferred, itertools.count(2)
            while selector.lower() in used:
                selector = f"{preferred}-{next(numbers)}"
            used.add(selector.lower())
            due.append((schedule.newest, selector, schedule.due))
    return due, is_undated


def _is_too_long(sign_domain: str, selector: str) -> bool:
    is_long = len(record_name(selector, sign_domain)) > MAX_NAME
    return is_long or max(map(len, selector.split("."))) > MAX_LABEL


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
    if len(dated) == 1:  # as in most lines, of which there may be 100,000
        return dated[0]
    return max(dated, key=lambda registration: registration.created_at or NEVER, default=None)


def _with_late_successors(
    of_domain: Iterable[Registration], settings: RotationSettings, now: datetime
) -> Iterator[DueKey]:
    """The keys that are due, and whose successor starts long after a new one would."""
    for line in lines_of(of_domain):
        later = [registration for registration in line if (registration.starts_at or now) > now]
        begun = _schedule_of([each for each in line if each not in later], settings, now)
        if not later or begun.newest is None or begun.due > now:
            continue
        start, selector = min((each.starts_at or NEVER, each.selector or "") for each in later)
        if start > max(begun.end, now + 2 * settings.lead):
            reason = f"{selector}, which follows it, does not start before {start.date()}: "
            reason += "register another one with an earlier start_date"
            yield DueKey(begun.newest, reason=reason)


def spec_of(
    old: Registration, selector: str | None, settings: RotationSettings, now: datetime
) -> DomainSpec:
    """A successor of `old`. Its fields are all set: the defaults of a profile change nothing.

    It starts after the lead, and not in a freeze. A run that is late leaves less time, up to a
    quarter less: so old keys sign no longer than with punctual runs.
    """
    schedule, start = _schedule_of([old], settings, now), now + settings.lead
    if start > schedule.start:
        start = max(schedule.start, now + settings.lead * _SHORTEST)
    elif (thawed := settings.frozen_until(start)) is not None:
        start = min(schedule.start, thawed)
    key_len = settings.key_len or max(_KEY_LEN, old.key_len or 0)
    asked = key_len, start_date(start, timedelta()), old.third_party, True
    return DomainSpec(old.sign_domain, selector, *asked, replaces=old.selector)
