"""A review of registrations: which are retired, after a look at DNS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import record_fault, with_key_len
from dkimctl.dns.verdicts import Check, Verdict
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration, RegistrationKey, named
from dkimctl.rotation.retirement import (
    RetirementPolicy,
    RetirementStatus,
    Stage,
    retirement_statuses,
)
from dkimctl.rotation.succession import Histories

if TYPE_CHECKING:
    from dkimctl.dns.check import Progress
    from dkimctl.dns.looks import Looks
    from dkimctl.dns.queries import Source
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection


class KnownKeys(NamedTuple):
    """The registrations of a ledger, those of them that are selected, and their histories."""

    registrations: Sequence[Registration]
    selected: frozenset[Registration]
    histories: Histories

    def statuses(self, policy: RetirementPolicy) -> list[RetirementStatus]:
        """The status of each selected registration."""
        statuses = retirement_statuses(self.registrations, self.histories, policy)
        return [status for status in statuses if status.registration in self.selected]

    def not_seen_gone(self, statuses: Iterable[RetirementStatus]) -> dict[str, str]:
        """What the last look at each of these records found, unless it was missing; by name.

        Of a key that has been replaced, also a record that was never looked at may be there.
        """
        found = {}
        for status in statuses:
            registration = status.registration
            verdict = self.histories.get(registration.key, KeyHistory()).verdict
            if verdict is None and status.is_over and not record_fault(with_key_len(registration)):
                verdict = "never checked"
            if verdict not in (None, Verdict.MISSING):
                found[named(registration)] = verdict
        return found

    def after(self, looks: Looks, now: datetime) -> KnownKeys:
        """The same, with what looks have found, even where the ledger cannot be written."""
        histories = dict(self.histories)
        for key, verdict in looks.latest.items():
            known = histories.get(key, KeyHistory())
            since = now if key in looks.breaks else min(known.published_at or now, now)
            histories[key] = known._replace(
                published_at=since if verdict is Verdict.PUBLISHED else None,
                looked_at=now,
                verdict=verdict,
            )
        return self._replace(histories=histories)


def read_known_keys(ledger: Ledger, selection: Selection) -> KnownKeys:
    """What the ledger knows of the selected registrations and their domains."""
    registrations = list(ledger.all())
    selected = frozenset(selection.pick(registrations))
    domains = {registration.key.sign_domain for registration in selected}
    of_domains = [one for one in registrations if one.key.sign_domain in domains]
    return KnownKeys(of_domains, selected, ledger.histories() if selected else {})


class Review(NamedTuple):
    """The statuses after a look at DNS; `unanswered` are those due that got no answer."""

    statuses: Sequence[RetirementStatus]
    unanswered: frozenset[Registration] = frozenset()


def review_with_look(
    known: KnownKeys,
    policy: RetirementPolicy,
    open_source: Callable[[], Source],
    *,
    progress: Progress,
    looks: Looks,
    clock: Callable[[], datetime],
) -> Review:
    """Check in DNS the successors that matter, and decide by that look alone.

    `looks` gets what is found. `open_source` is called if there is something to check.
    """
    checks = {
        check.key: check for check in _look(known.statuses(policy), open_source, progress, looks)
    }
    now = clock()
    published = {key for key, one in looks.latest.items() if one is Verdict.PUBLISHED}
    fresh = policy._replace(now=now, published_now=published)
    statuses = [_explained(status, checks) for status in known.after(looks, now).statuses(fresh)]
    unanswered = (
        status.registration
        for status in statuses
        if status.stage is Stage.DUE and _is_unanswered(status, checks)
    )
    return Review(statuses, frozenset(unanswered))


def _look(
    statuses: Iterable[RetirementStatus],
    open_source: Callable[[], Source],
    progress: Progress,
    looks: Looks,
) -> list[Check]:
    successors = {one.key: one for status in statuses for one in status.successors}
    sound = [one for one in successors.values() if not record_fault(with_key_len(one))]
    if not sound:
        return []
    from dkimctl.dns.check import CheckPolicy, check_publication

    checks: list[Check] = []
    policy = CheckPolicy(wait=0.0, warn_within=timedelta(), expect_absent=False)
    check_publication(sound, open_source(), policy, checks.append, progress=progress, looks=looks)
    return checks


def _explained(
    status: RetirementStatus, checks: Mapping[RegistrationKey, Check]
) -> RetirementStatus:
    """The status, with what the look has found at the successor of one that is due."""
    if status.stage is not Stage.DUE or not status.successors:
        return status
    check = checks.get(status.successors[0].key)
    if check is None:
        return status
    verdict, reason = check.finding.verdict, check.finding.reason
    now = f"{verdict} ({reason})" if reason else verdict
    return status._replace(reason=f"{status.reason}; DNS now: {now}")


def _is_unanswered(status: RetirementStatus, checks: Mapping[RegistrationKey, Check]) -> bool:
    found = [checks[one.key] for one in status.successors if one.key in checks]
    return bool(found) and all(one.finding.verdict is Verdict.NO_ANSWER for one in found)
