"""Which key replaces which, and which keys are retired: their records may be removed from DNS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.verdicts import Check, Looks, Verdict
from dkimctl.ledger.ledger import DomainKeys, Ledger
from dkimctl.models import (
    NEVER,
    DomainSpec,
    KeyHistory,
    Outcome,
    Registration,
    RegistrationKey,
    Result,
    named,
    utc_time,
)
from dkimctl.names import Selection
from dkimctl.registration import outcomes
from dkimctl.settings.rotation import Policies
from dkimctl.text import few

Histories = Mapping[RegistrationKey, KeyHistory]  # as the ledger has them


class Retirement(StrEnum):
    """How far a registration is on its way out, the furthest first."""

    RETIRED = "retired"
    DUE = "due"  # its successor must be seen published first
    SIGNING = "still signing"  # past its grace period, mail passes with it
    WAITING = "waiting"  # for the end of the grace period, or of a freeze
    UNKNOWN = "unknown"  # whether a newer key replaces it
    CURRENT = "current"


_RETIREMENTS = list(Retirement)
_LATELY = timedelta(days=5)  # since mail with a key passed; reports arrive a day late
_SWITCHED = timedelta(days=3)  # after which signers should use a key that has begun


class RetirementPolicy(NamedTuple):
    """What counts as retired, and by which looks at DNS."""

    now: datetime
    seen_since: datetime  # looks before this are too old to rely on
    #: A newer key replaces the older ones, unless it is recorded which it does.
    assume_successors: bool = False
    rotation: Policies = Policies()  # for whose `grace` a successor must have taken over
    despite_reports: bool = False  # as if no mail were known to pass


class Takeover(NamedTuple):
    """What a key that replaces an older one means for that: it is enabled, and starts later."""

    successor: Registration
    begins: datetime  # when it begins to sign; a start keeps its offset
    published_at: datetime | None  # since when it is in DNS
    took_over: datetime  # since when it does all that it must; NEVER: it was not seen published
    retirement: Retirement
    reason: str


class RetirementStatus(NamedTuple):
    """How far a registration is; `reason` says by which successor, or what is missing."""

    registration: Registration
    history: KeyHistory
    retirement: Retirement
    reason: str
    #: The keys of which one must be seen published, of a registration that is due or retired.
    successors: Sequence[Registration] = ()
    #: The grace period has passed since one of them took over, and was published.
    is_over: bool = False
    takeover: Takeover | None = None  # by the successor that decides, if there is any
    is_unanswered: bool = False  # DNS gave no answer about any of them
    #: Mail passes with it, days after its successor began, and none with that.
    is_not_followed: bool = False
    is_late: bool = False  # mail passes with it although its grace period ended a `lead` ago

    @property
    def needs_record(self) -> bool:
        """Whether its record must be in DNS: it signs, or will, or its mail is on its way."""
        return self.registration.signs and not self.is_over


class KnownKeys(NamedTuple):
    """The keys of each domain of a ledger that has selected ones, and which those are."""

    domains: Sequence[Mapping[Registration, KeyHistory]]
    selected: frozenset[Registration]

    def statuses(self, policy: RetirementPolicy) -> list[RetirementStatus]:
        """The status of each selected registration."""
        return [
            status
            for histories in self.domains
            for status in statuses_of(histories, policy)
            if status.registration in self.selected
        ]

    @property
    def histories(self) -> Histories:
        return {
            registration.key: history
            for histories in self.domains
            for registration, history in histories.items()
        }

    def after(self, looks: Looks, now: datetime) -> KnownKeys:
        """The same, with what looks have found, even where the ledger cannot be written."""
        domains = [dict(histories) for histories in self.domains]
        for histories in domains:
            for registration, history in histories.items():
                key = registration.key
                if (verdict := looks.latest.get(key)) is not None:
                    since = now if key in looks.breaks else min(history.published_at or now, now)
                    published_at = since if verdict is Verdict.PUBLISHED else None
                    histories[registration] = history._replace(
                        published_at=published_at, looked_at=now, verdict=verdict
                    )
        return self._replace(domains=domains)


def known_keys(
    domains: Iterable[DomainKeys], selection: Selection, *, whole_domains: bool = False
) -> KnownKeys:
    """What the ledger knows of the selected registrations; `whole_domains`: of all beside them."""
    kept: list[Mapping[Registration, KeyHistory]] = []
    selected: set[Registration] = set()
    for domain in domains:
        if picked := set(selection.pick(domain.histories)):
            selected |= set(domain.histories) if whole_domains else picked
            kept.append(domain.histories)
    return KnownKeys(kept, frozenset(selected))


def review(
    known: KnownKeys,
    policy: RetirementPolicy,
    checks: Mapping[RegistrationKey, Check],
    looks: Looks,
) -> list[RetirementStatus]:
    """The status of each selected registration, by new `checks` of successors, and `looks`."""
    statuses = []
    for status in known.after(looks, policy.now).statuses(policy._replace(seen_since=policy.now)):
        seen = [checks[each.key] for each in status.successors if each.key in checks]
        if status.retirement is Retirement.DUE and seen:
            reason, first = status.reason, checks.get(status.successors[0].key)
            reason += f"; {described(first)}" if first else ""
            silent = all(check.finding.verdict is Verdict.NO_ANSWER for check in seen)
            status = status._replace(reason=reason, is_unanswered=silent)  # noqa: PLW2901
        statuses.append(status)
    return statuses


def described(check: Check) -> str:
    """What DNS has, for a reason."""
    verdict, reason = check.finding.verdict, check.finding.reason
    return f"DNS now: {verdict} ({reason})" if reason else f"DNS now: {verdict}"


def statuses_of(
    histories: Mapping[Registration, KeyHistory], policy: RetirementPolicy
) -> Iterator[RetirementStatus]:
    """The status of each registration of a domain, of which these are all; the oldest first.

    A registration that was enabled and has begun is retired when, for the `grace` of its domain, a
    key that replaces it has started, is enabled, and is published; and was seen to be so since
    `policy.seen_since`.
    """
    replacing: dict[str, list[Registration]] = {}  # by the selector that is replaced
    for registration, history in histories.items():
        if history.replaces is not None:
            replacing.setdefault(history.replaces.lower(), []).append(registration)
    oldest_first = sorted(histories.items(), key=lambda item: item[0].starts_at or NEVER)
    for registration, history in oldest_first:
        start, reason = registration.starts_at, ""
        if registration.is_taken:
            reason = "it belongs to another account"
        elif start is None:
            reason = "neither its start_date nor its regist_date can be read"
        elif history.enabled_at is None:
            reason = "it was never enabled"
        elif start > policy.now:
            reason = f"it starts on {start.date()}"
        if reason:
            yield RetirementStatus(registration, history, Retirement.CURRENT, reason)
        else:
            yield _status(registration, history, histories, replacing, policy)


def keys_past_grace(
    ledger: Ledger, now: datetime, policies: Policies
) -> dict[RegistrationKey, str]:
    """The keys whose grace period is over, each with a reason that names its successor."""
    policy, rotated = RetirementPolicy(now, now, rotation=policies), ledger.rotated_domains()
    return {
        status.registration.key: f"{status.successors[0].selector} has replaced it; to remove it "
        f"from the ledger: `dkimctl ledger forget {status.registration.sign_domain}`"
        for domain in (ledger.domains() if rotated else ())
        if domain.sign_domain in rotated
        for status in statuses_of(domain.histories, policy)
        if status.is_over
    }


def why_it_stays(status: RetirementStatus, ledger: Ledger) -> str:
    """The reason, with the networks from which mail with the key comes."""
    networks = few(ledger.networks(status.registration.key))
    return f"{status.reason}; from {networks}" if networks else status.reason


def not_seen_gone(statuses: Iterable[RetirementStatus]) -> dict[str, str]:
    """What the last look at each of these records found, unless it was missing; by name.

    Of a key that has been replaced, also a record that was never looked at may be there.
    """
    seen = {}
    for status in statuses:
        registration, verdict = status.registration, status.history.verdict
        if verdict is None and status.is_over and not record_fault(with_key_len(registration)):
            verdict = "never checked"
        if verdict not in (None, Verdict.MISSING):
            seen[named(registration)] = verdict
    return seen


def retired_results(statuses: Iterable[RetirementStatus]) -> list[Result]:
    """The registrations that are retired."""
    return [as_result(each) for each in statuses if each.retirement is Retirement.RETIRED]


def as_result(status: RetirementStatus) -> Result:
    """The registration as commands show it, with the reason if its grace period is over."""
    registration = status.registration
    spec = DomainSpec(registration.sign_domain, registration.selector)
    result = outcomes.of_registered(spec, registration)
    if status.is_over and result.outcome is Outcome.EXISTS:
        return result._replace(outcome=Outcome.RETIRED, reason=status.reason)
    return result


def _status(
    old: Registration,
    history: KeyHistory,
    keys: Mapping[Registration, KeyHistory],
    replacing: Mapping[str, Sequence[Registration]],
    policy: RetirementPolicy,
) -> RetirementStatus:
    """The status of a key of a domain that has these `keys`; `replacing` are those made for others.

    What replaces it are the keys that were made to, or to replace one of those, and so on.
    """
    newer = [key for key in keys if key is not old and is_newer(key, old)]
    recorded = _successors(old, [old], keys, replacing) if newer else []
    # The newer keys of which it is not recorded what they replace, and keys that replace them: the
    # latter may be all that is left, since the former may be disabled, or retired themselves.
    first = [registration for registration in newer if keys[registration].replaces is None]
    assumed = _successors(old, first, keys, replacing) if first else []
    successors = [*recorded, *assumed] if policy.assume_successors else recorded
    if not successors:
        retirement = Retirement.UNKNOWN if assumed else Retirement.CURRENT
        reason = "no newer selector of the domain replaces it: run `dkimctl rotate`"
        if assumed:
            reason = f"it is not recorded whether {assumed[0].selector or ''} replaces it"
        return RetirementStatus(old, history, retirement, reason)
    takeovers = [_takeover(each, keys[each], history, policy) for each in successors]
    takeovers.sort(key=lambda each: each.successor.starts_at or NEVER)
    takeovers.sort(key=lambda each: (_RETIREMENTS.index(each.retirement), each.took_over))
    best, certain = takeovers[0], (Retirement.RETIRED, Retirement.DUE)
    deciding = [each.successor for each in takeovers if each.retirement in certain]
    settings = policy.rotation.of(old.key.sign_domain)
    is_over = best.took_over <= policy.now - settings.grace
    is_not_followed = is_late = False
    # What passed longer ago proves nothing: reports may have ceased to come.
    passed_on = None if policy.despite_reports else history.passed_on
    if passed_on is not None and policy.now.date() - passed_on <= _LATELY:
        is_late = best.took_over < policy.now - settings.grace - settings.lead
        reason = f"mail passed with it on {passed_on}"
        since = max(best.begins, policy.now - _LATELY).date()
        is_switched = any((keys[each].passed_on or date.min) >= since for each in successors)
        is_not_followed = not is_switched and passed_on - best.begins.date() >= _SWITCHED
        if is_not_followed:
            reason += f", and none in the last {_LATELY.days} days with {best.successor.selector}, "
            reason += f"which began on {best.begins.date()}"
        if is_over:
            best = best._replace(retirement=Retirement.SIGNING, reason=f"still signing: {reason}")
            is_over = False  # its record is needed
        elif is_not_followed:
            best = best._replace(reason=f"{best.reason}; {reason}")
    if is_over and (thawed := settings.frozen_until(policy.now)) is not None:
        reason = f"{best.reason}; nothing is removed before {thawed.date()} (freeze)"
        best = best._replace(retirement=Retirement.WAITING, reason=reason)
    return RetirementStatus(
        old, history, best.retirement, best.reason, deciding, is_over, best,
        is_not_followed=is_not_followed, is_late=is_late,
    )  # fmt: skip


def _successors(
    old: Registration,
    first: Iterable[Registration],
    keys: Mapping[Registration, KeyHistory],
    replacing: Mapping[str, Sequence[Registration]],
) -> list[Registration]:
    """Those of the `first` and of the keys that replace them that can replace `old`."""
    chain = list(first)
    for registration in chain:  # also those added meanwhile
        following = replacing.get(registration.key.selector, ())
        chain += [other for other in following if other not in chain]
    return [
        each
        for each in chain
        if keys[each].enabled_at is not None and keys[each].disabled_at is None
        and each.signs and is_newer(each, old)
    ]  # fmt: skip


def _takeover(
    successor: Registration, history: KeyHistory, of_old: KeyHistory, policy: RetirementPolicy
) -> Takeover:
    now, published, looked_at = policy.now, history.published_at, history.looked_at
    grace = policy.rotation.of(successor.key.sign_domain).grace
    start, enabled = successor.starts_at or NEVER, history.enabled_at or NEVER
    text = f"its successor {successor.selector or ''} {'starts' if start > now else 'started'} on "
    text += str(start.date())
    if enabled > start:
        text += f", was enabled on {enabled.date()}"
    if looked_at is None:
        text += ", but was never seen published"
    elif published is None:
        text += f"; DNS on {looked_at.date()}: {history.verdict}"
    else:
        text += f" and was seen published from {published.date()} to {looked_at.date()}"

    begins = max(start, enabled)
    if published is not None and published > now:
        published = None  # by a wrong clock: look again
    if of_old.closed_at is not None and begins <= of_old.closed_at:
        published = begins  # at that time, the successor had been published for long
    if of_old.signed_at is not None and published is not None:
        published = max(published, of_old.signed_at)  # the grace period begins again
    took_over = NEVER if published is None else max(begins, published).astimezone(UTC)
    if max(begins, published or begins) > now - grace:
        wait = "run `dkimctl check-dns`"
        if published is not None:
            end = min(took_over, NEVER - grace) + grace
            wait = f"wait until {end.isoformat(timespec='minutes')}"
        retirement, text = Retirement.WAITING, f"{text}: {wait}"
    else:
        # It is retired only if the successor was published at the last look, which is recent.
        is_recent = looked_at is not None and policy.seen_since <= looked_at <= now
        is_seen = published is not None and is_recent and history.verdict == Verdict.PUBLISHED
        retirement = Retirement.RETIRED if is_seen else Retirement.DUE
    return Takeover(successor, begins, history.published_at, took_over, retirement, text)


def is_newer(registration: Registration, old: Registration) -> bool:
    """Whether a key signs the same mail (default, interface 2.3), and begins later than another.

    Its start_date as it is written must be later, too: the interface does not say which of several
    keys signs, so the service may go by either.
    """
    return registration.third_party == old.third_party and all(
        ours is not None and theirs is not None and ours > theirs
        for ours, theirs in zip(_beginnings(registration), _beginnings(old), strict=True)
    )


def _beginnings(registration: Registration) -> tuple[datetime | None, datetime | None]:
    start = registration.starts_at
    return start, utc_time(registration.start_date) or start
