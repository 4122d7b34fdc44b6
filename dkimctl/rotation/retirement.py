"""Which registrations are retired, so that their records may be removed from DNS."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns.verdicts import Verdict
from dkimctl.models.history import KeyHistory
from dkimctl.models.keys import NEVER
from dkimctl.models.registration import (
    DomainSpec,
    Outcome,
    Registration,
    RegistrationKey,
    Result,
    by_signing_domain,
)
from dkimctl.registration import outcomes
from dkimctl.rotation.succession import Histories, Succession, Successor

# Mail signed with the old key may wait in queues for five days (RFC 5321 4.5.4.1), and is verified
# again when it is read or forwarded; the rest is time to notice that signing has not moved.
GRACE_PERIOD = timedelta(days=14)


class Stage(StrEnum):
    """How far a registration is on its way out, the furthest first."""

    RETIRED = "retired"
    DUE = "due"  # its successor must be seen published first
    WAITING = "waiting"  # for the end of the grace period
    UNKNOWN = "unknown"  # whether a newer key replaces it
    CURRENT = "current"


_STAGES = list(Stage)
_DECIDING = (Stage.RETIRED, Stage.DUE)


class RetirementPolicy(NamedTuple):
    """Looks at DNS before `seen_since` are too old to rely on.

    `assume_successors`: a newer key replaces the older ones, unless it is recorded which it does.
    `published_now`: the keys that a look at DNS has just found; no other look counts then. `grace`:
    for how long a successor must have taken over.
    """

    now: datetime
    seen_since: datetime
    assume_successors: bool = False
    published_now: Container[RegistrationKey] | None = None
    grace: timedelta = GRACE_PERIOD


class Takeover(NamedTuple):
    """What a successor means for the old key.

    `took_over`: since when it does all that it must; NEVER: it was not seen published.
    """

    successor: Successor
    took_over: datetime
    stage: Stage
    reason: str


class RetirementStatus(NamedTuple):
    """The stage of a registration; `reason` says by which successor, or what is missing.

    `successors` are the keys of which one must be seen published, of a registration that is due or
    retired. `is_over`: the grace period has passed since one of them took over, and was published.
    `takeover` is by the successor that decides, if there is any.
    """

    registration: Registration
    stage: Stage
    reason: str
    successors: Sequence[Registration] = ()
    is_over: bool = False
    takeover: Takeover | None = None


def retirement_statuses(
    registrations: Iterable[Registration], histories: Histories, policy: RetirementPolicy
) -> Iterator[RetirementStatus]:
    """The status of each of `registrations`, which are all those of their domains.

    A registration that was enabled and has begun is retired when, for `policy.grace`, a key that
    replaces it has started, is enabled, and is published; and was seen to be so since
    `policy.seen_since`. Oldest first within each domain.
    """
    for of_domain in by_signing_domain(registrations).values():
        succession = Succession(of_domain, histories)
        for registration in sorted(of_domain, key=lambda one: one.starts_at or NEVER):
            history = histories.get(registration.key, KeyHistory())
            reason = _why_not_old(registration, history, policy.now)
            if reason:
                yield RetirementStatus(registration, Stage.CURRENT, reason)
            else:
                yield _status(registration, succession, policy)


def keys_past_grace(
    registrations: Iterable[Registration],
    histories: Histories,
    now: datetime,
    grace: timedelta = GRACE_PERIOD,
) -> dict[RegistrationKey, str]:
    """The keys whose grace period is over, each with a reason that names its successor."""
    policy = RetirementPolicy(now, now, grace=grace)
    return {
        status.registration.key: f"{status.successors[0].selector} has replaced it; to remove it "
        f"from the ledger: `dkimctl ledger forget {status.registration.sign_domain}`"
        for status in retirement_statuses(registrations, histories, policy)
        if status.is_over
    }


def as_result(status: RetirementStatus) -> Result:
    """The registration as commands show it, with the reason if its grace period is over."""
    registration = status.registration
    spec = DomainSpec(registration.sign_domain, registration.selector)
    result = outcomes.of_registered(spec, registration)
    if status.is_over and result.outcome is Outcome.EXISTS:
        return result._replace(outcome=Outcome.RETIRED, reason=status.reason)
    return result


def _why_not_old(registration: Registration, history: KeyHistory, now: datetime) -> str:
    """Why nothing replaces this key yet; or ""."""
    start = registration.starts_at
    if registration.is_taken:
        return "it belongs to another account"
    if start is None:
        return "neither its start_date nor its regist_date can be read"
    if history.enabled_at is None:
        return "it was never enabled"
    return f"it starts on {start.date()}" if start > now else ""


def _status(
    old: Registration, succession: Succession, policy: RetirementPolicy
) -> RetirementStatus:
    successors, unrecorded = succession.recorded(old), succession.assumed(old)
    if policy.assume_successors:
        successors += unrecorded
    if not successors and unrecorded:
        reason = f"it is not recorded whether {unrecorded[0].selector} replaces it"
        return RetirementStatus(old, Stage.UNKNOWN, reason)
    if not successors:
        reason = "no newer selector of the domain replaces it: run `dkimctl rotate`"
        return RetirementStatus(old, Stage.CURRENT, reason)
    takeovers = sorted((_takeover(one, policy) for one in successors), key=_rank)
    best = takeovers[0]
    deciding = [one.successor.registration for one in takeovers if one.stage in _DECIDING]
    is_over = best.took_over <= policy.now - policy.grace
    return RetirementStatus(old, best.stage, best.reason, deciding, is_over, best)


def _takeover(successor: Successor, policy: RetirementPolicy) -> Takeover:
    begins = max(successor.starts_at, successor.enabled_at)
    published = successor.history.published_at
    if published is not None and published > policy.now:
        published = None  # a wrong clock has told it: look again
    took_over = NEVER if published is None else max(begins, published)
    text = _description(successor, policy.now)
    if max(begins, published or begins) > policy.now - policy.grace:
        wait = (
            "run `dkimctl check-dns`"
            if published is None
            else f"wait until {_end(took_over, policy)}"
        )
        return Takeover(successor, took_over, Stage.WAITING, f"{text}: {wait}")
    if published is not None and _is_seen(successor, policy):
        return Takeover(successor, took_over, Stage.RETIRED, text)
    return Takeover(successor, took_over, Stage.DUE, text)


def _rank(takeover: Takeover) -> tuple[int, datetime, datetime]:
    return _STAGES.index(takeover.stage), takeover.took_over, takeover.successor.starts_at


def _is_seen(successor: Successor, policy: RetirementPolicy) -> bool:
    """Whether it was published at the last look, which is recent."""
    if policy.published_now is not None:
        return successor.registration.key in policy.published_now
    history = successor.history
    if history.looked_at is None or history.verdict != Verdict.PUBLISHED:
        return False
    return policy.seen_since <= history.looked_at <= policy.now


def _description(successor: Successor, now: datetime) -> str:
    start, enabled, history = successor.starts_at, successor.enabled_at, successor.history
    text = f"its successor {successor.selector} {'starts' if start > now else 'started'} on "
    text += str(start.date())
    if enabled > start:
        text += f", was enabled on {enabled.date()}"
    if history.published_at is not None and history.looked_at is not None:
        return (
            f"{text} and was seen published from {history.published_at.date()} to "
            f"{history.looked_at.date()}"
        )
    if history.looked_at is not None:
        return f"{text}; DNS on {history.looked_at.date()}: {history.verdict}"
    return f"{text}, but was never seen published"


def _end(took_over: datetime, policy: RetirementPolicy) -> str:
    """The end of the grace period (UTC)."""
    end = min(took_over, NEVER - policy.grace) + policy.grace
    return end.isoformat(timespec="minutes")
