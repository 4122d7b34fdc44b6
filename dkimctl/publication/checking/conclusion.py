"""What follows from the servers' findings for resolvers, which see more than the servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.publication.verdicts import ACCEPTED, Check, Finding, Verdict
from dkimctl.resolver.authorities import Zone


class Conclusion(NamedTuple):
    """A check. `is_secure`: the resolver should be able to validate the record (DNSSEC)."""

    check: Check
    is_secure: bool = False


def conclude(check: Check, zones: Sequence[Zone]) -> Conclusion:
    """The check of a record that is in these zones: its own, and those that its aliases lead to."""
    if check.finding.verdict not in ACCEPTED:
        return Conclusion(check)
    if reason := _first(zone.bogus for zone in zones):
        return Conclusion(as_bogus(check, reason))
    if unknown := _first(zone.unknown_delegation for zone in zones):
        reason = "; ".join(filter(None, (check.finding.reason, unknown)))
        check = check._replace(finding=check.finding._replace(reason=reason), is_first_hand=False)
    return Conclusion(check, any(zone.is_secure for zone in zones))


def as_bogus(check: Check, reason: str) -> Check:
    """The check of a record that the resolver cannot validate."""
    return check._replace(finding=Finding(Verdict.BOGUS, reason))


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")
