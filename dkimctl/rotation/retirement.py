"""Which registrations are retired, so that their records may be removed from DNS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.models.registration import (
    DomainSpec,
    Outcome,
    Registration,
    RegistrationKey,
    Result,
    by_signing_domain,
)
from dkimctl.registration import outcomes

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection

# Mail signed with the old key may wait in queues for five days (RFC 5321 4.5.4.1), and is verified
# again when it is read or forwarded; the rest is time to notice that signing has not moved.
GRACE_PERIOD = timedelta(days=14)
_NEVER = datetime.max.replace(tzinfo=UTC)

Publications = Mapping[RegistrationKey, datetime]  # as the ledger has them


class RetirementStatus(NamedTuple):
    """Whether a registration is retired; `reason` says by which successor, or what is missing."""

    registration: Registration
    is_retired: bool
    reason: str


class _Dated(NamedTuple):
    """A registration with the start of its signing."""

    start: datetime
    registration: Registration


class _Successor(NamedTuple):
    """A registration that signs from `start`; `published`: since when, if it is."""

    selector: str
    start: datetime
    published: datetime | None

    @property
    def took_over(self) -> datetime:
        return _NEVER if self.published is None else max(self.start, self.published)


def select_statuses(ledger: Ledger, selection: Selection, now: datetime) -> list[RetirementStatus]:
    """The status of each selected registration of the ledger; empty if none is selected."""
    registrations = list(ledger.all())
    selected = set(selection.pick(registrations))
    if not selected:
        return []
    publications = {
        key: history.published_at
        for key, history in ledger.histories().items()
        if history.published_at is not None
    }
    statuses = retirement_statuses(registrations, publications, now)
    return [status for status in statuses if status.registration in selected]


def retirement_statuses(
    registrations: Iterable[Registration], publications: Publications, now: datetime
) -> Iterator[RetirementStatus]:
    """The status of each of `registrations`, which are all those of their domains.

    A registration is retired when an enabled registration of its signing domain that starts later
    has started, and was seen published, over 14 days ago. Oldest first within each domain.
    """
    for of_domain in by_signing_domain(registrations).values():
        yield from reversed(list(_newest_first(of_domain, publications, now)))


def as_result(status: RetirementStatus) -> Result:
    """The registration as commands show it, with the reason if it is retired."""
    registration = status.registration
    spec = DomainSpec(registration.sign_domain, registration.selector)
    result = outcomes.of_registered(spec, registration)
    if status.is_retired and result.outcome is Outcome.EXISTS:
        return result._replace(reason=status.reason)
    return result


def _newest_first(
    of_domain: Sequence[Registration], publications: Publications, now: datetime
) -> Iterator[RetirementStatus]:
    dated = []
    for registration in of_domain:
        start = registration.starts_at
        if registration.is_taken:
            yield RetirementStatus(registration, False, "it belongs to another account")
        elif start is None:
            reason = "neither its start_date nor its regist_date can be read"
            yield RetirementStatus(registration, False, reason)
        else:
            dated.append(_Dated(start, registration))
    dated.sort(key=lambda one: one.start, reverse=True)
    first: _Successor | None = None  # to take over, of those that start later
    for _, group in groupby(dated, key=lambda one: one.start):
        same_start = list(group)
        for one in same_start:
            yield _status(one.registration, first, now)
        for successor in _successors(same_start, publications):
            if first is None or successor.took_over < first.took_over:
                first = successor


def _successors(
    registrations: Iterable[_Dated], publications: Publications
) -> Iterator[_Successor]:
    for start, registration in registrations:
        if registration.signs:
            published = publications.get(registration.key)
            yield _Successor(registration.selector or "", start, published)


def _status(
    registration: Registration, successor: _Successor | None, now: datetime
) -> RetirementStatus:
    if successor is None:
        reason = "the domain has no newer selector: run `dkimctl rotate`"
        return RetirementStatus(registration, False, reason)
    if successor.published is None:
        reason = "no newer selector of the domain was seen published: run `dkimctl check-dns`"
        return RetirementStatus(registration, False, reason)
    text = (
        f"its successor {successor.selector} {'starts' if successor.start > now else 'started'} on "
        f"{successor.start.date()} and was first seen published on {successor.published.date()}"
    )
    if successor.took_over <= now - GRACE_PERIOD:
        return RetirementStatus(registration, True, text)
    return RetirementStatus(registration, False, f"{text}: wait until {_end(successor)}")


def _end(successor: _Successor) -> str:
    """The end of the grace period (UTC)."""
    end = min(successor.took_over, _NEVER - GRACE_PERIOD) + GRACE_PERIOD
    return end.isoformat(timespec="minutes")
