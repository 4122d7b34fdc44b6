"""Which registrations have had their time, so that their records may be removed from DNS."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from dkimctl.models.registration import DomainSpec, Outcome, Registration, RegistrationKey, Result
from dkimctl.registration import outcomes

# Mail that was signed with the old key may wait in queues for five days (RFC 5321 4.5.4.1), and
# is verified again where it is read or forwarded; the rest is for who notices late that signing
# has not moved.
GRACE_PERIOD = timedelta(days=14)
_LAST = datetime.max.replace(tzinfo=UTC)

Publications = Mapping[RegistrationKey, datetime]  # as the ledger gives them


class RetirementStatus(NamedTuple):
    """Whether a registration is retired; `reason` says by what, or what is to happen first."""

    registration: Registration
    is_retired: bool
    reason: str


class _Successor(NamedTuple):
    """A registration that takes over at `start`; `seen`: since when it is published, if it is."""

    selector: str
    start: datetime
    seen: datetime | None

    @property
    def settled(self) -> datetime:
        return _LAST if self.seen is None else max(self.start, self.seen)


def fates(
    registrations: Iterable[Registration], publications: Publications, now: datetime
) -> Iterator[RetirementStatus]:
    """The fate of each of `registrations`, of whose domains all are to be there.

    One is retired when, of its signing domain, an enabled registration that starts later has
    started and was seen published over 14 days ago. Oldest first within each domain.
    """
    by_domain: dict[str, list[Registration]] = {}
    for found in registrations:
        by_domain.setdefault(found.key.sign_domain, []).append(found)
    for of_domain in by_domain.values():
        yield from reversed(list(_newest_first(of_domain, publications, now)))


def as_result(fate: RetirementStatus) -> Result:
    """The registration as commands show it; of one that is retired, with the reason."""
    found = fate.registration
    result = outcomes.of_registered(DomainSpec(found.sign_domain, found.selector), found)
    if fate.is_retired and result.outcome is Outcome.EXISTS:
        return result._replace(reason=fate.reason)
    return result


def _newest_first(
    of_domain: Sequence[Registration], publications: Publications, now: datetime
) -> Iterator[RetirementStatus]:
    dated = []
    for found in of_domain:
        start = found.starts_at
        if found.is_taken:
            yield RetirementStatus(found, False, "somebody else has registered it")
        elif start is None:
            yield RetirementStatus(
                found, False, "neither its start_date nor its regist_date can be read"
            )
        else:
            dated.append((start, found))
    dated.sort(key=itemgetter(0), reverse=True)
    best: _Successor | None = None  # of those that start later
    for start, group in groupby(dated, key=itemgetter(0)):
        together = [found for _, found in group]
        yield from (_fate(found, best, now) for found in together)
        for found in together:
            if not found.signs:
                continue
            one = _Successor(found.selector or "", start, publications.get(found.key))
            if best is None or one.settled < best.settled:
                best = one


def _fate(found: Registration, successor: _Successor | None, now: datetime) -> RetirementStatus:
    if successor is None:
        return RetirementStatus(
            found, False, "the domain has no newer selector: run `dkimctl rotate`"
        )
    if successor.seen is None:
        reason = "no newer selector of the domain was seen published: run `dkimctl check-dns`"
        return RetirementStatus(found, False, reason)
    text = (
        f"its successor {successor.selector} {'starts' if successor.start > now else 'started'} on "
        f"{successor.start.date()} and was first seen published on {successor.seen.date()}"
    )
    if successor.settled <= now - GRACE_PERIOD:
        return RetirementStatus(found, True, text)
    return RetirementStatus(found, False, f"{text}: wait until {_after(successor.settled)}")


def _after(settled: datetime) -> str:
    """When enough time has passed since then (UTC)."""
    over = min(settled, _LAST - GRACE_PERIOD) + GRACE_PERIOD
    return over.isoformat(timespec="minutes")
