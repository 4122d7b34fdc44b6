"""Looks at DNS, for the ledger: the verdict of each check that says something for certain."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dkimctl.dns.verdicts import Check, Verdict
from dkimctl.errors import LedgerError
from dkimctl.models.registration import DnsRecord, Registration, RegistrationKey

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger


class Looks:
    """The looks to record in the ledger: the verdicts of checks that say something for certain.

    At the records of the keys in `counted` (None: at all). A check without an answer is not a look.
    """

    def __init__(self, counted: Container[RegistrationKey] | None = None) -> None:
        self._counted = counted
        #: What the last look at each record found.
        self.latest: dict[RegistrationKey, Verdict] = {}
        #: What an earlier look found, at records that are published now, and were not then.
        self.breaks: dict[RegistrationKey, Verdict] = {}

    def add(self, check: Check) -> None:
        """Take in a check; the last check of a record counts."""
        key = check.key
        if self._counted is not None and key not in self._counted:
            return
        verdict = _certain_verdict(check)
        if verdict is None:
            return
        before = self.latest.get(key, Verdict.PUBLISHED)
        if verdict is Verdict.PUBLISHED and before is not Verdict.PUBLISHED:
            self.breaks[key] = before
        self.latest[key] = verdict


def _certain_verdict(check: Check) -> Verdict | None:
    """What is certain after a check, although some servers may not have answered or be known."""
    verdict = check.finding.verdict
    has_failed = any(
        Verdict.NO_ANSWER in (one.finding.verdict, *one.finding.seen) for one in check.servers
    )
    if check.is_delegation_known and not has_failed:
        return None if verdict is Verdict.NO_ANSWER else verdict
    if verdict in (Verdict.NO_ANSWER, Verdict.PUBLISHED):
        return None
    return Verdict.INCONSISTENT if verdict is Verdict.MISSING else verdict


@contextmanager
def recording_looks(
    open_ledger: Callable[[], Ledger],
    on_failure: Callable[[LedgerError], None],
    counted: Container[RegistrationKey] | None = None,
) -> Iterator[Looks]:
    """Looks that are written into the ledger at the end, even if an error ends the checks.

    `open_ledger` opens it for writing. If that or writing fails, `on_failure` gets the error.
    """
    looks = Looks(counted)
    try:
        yield looks
    finally:
        if looks.latest:
            try:
                with open_ledger() as ledger:
                    ledger.note_looks(looks.breaks)
                    ledger.note_looks(looks.latest)
            except LedgerError as error:
                on_failure(error)


def same_records(ledger: Ledger, registrations: Iterable[Registration]) -> set[RegistrationKey]:
    """The keys of those `registrations` that the ledger has with the same record."""
    records = {one.key: _as_in_dns(one.record) for one in ledger.ours() if one.record}
    return {
        one.key
        for one in registrations
        if one.record and records.get(one.key) == _as_in_dns(one.record)
    }


def _as_in_dns(record: DnsRecord) -> tuple[str, str]:
    return record.fqdn.lower(), record.value
