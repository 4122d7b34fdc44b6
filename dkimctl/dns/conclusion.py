"""What follows from the servers' findings for resolvers, which see more than the servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.dns.authorities import Zone
from dkimctl.dns.verdicts import ACCEPTED, Check, Finding, Verdict


class Conclusion(NamedTuple):
    """A check. `is_secure`: the resolver should be able to validate the record (DNSSEC)."""

    check: Check
    is_secure: bool = False


def conclude(check: Check, zones: Sequence[Zone], *, is_wanted: bool) -> Conclusion:
    """The check of a record in these zones: its own, and those that its aliases lead to.

    `is_wanted`: it should be published.
    """
    check = _with_delegation(check, zones)
    if check.finding.verdict not in ACCEPTED or not is_wanted:
        return Conclusion(check)
    if reason := _first(zone.bogus for zone in zones):
        return Conclusion(as_bogus(check, reason))
    return Conclusion(check, any(zone.is_secure for zone in zones))


def as_bogus(check: Check, reason: str) -> Check:
    """The check of a record that the resolver cannot validate."""
    return check._replace(finding=Finding(Verdict.BOGUS, reason))


def _with_delegation(check: Check, zones: Sequence[Zone]) -> Check:
    """The check, which says if the delegation of one of the zones is not known."""
    unknown = _first(zone.unknown_delegation for zone in zones)
    if not unknown or check.finding.verdict is Verdict.NO_ANSWER:
        return check
    reason = "; ".join(filter(None, (check.finding.reason, unknown)))
    return check._replace(finding=check.finding._replace(reason=reason), is_delegation_known=False)


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")
