"""Verdicts: whether the record in DNS is the one that was registered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.models.registration import RegistrationKey, key_of, utc_time


class Verdict(StrEnum):
    """What one server, or all of them together, have for a record."""

    PUBLISHED = "published"
    RETIRED = "retired"  # missing, as it should be
    DIFFERS = "differs"  # verifiers accept it, but its tags are not as registered
    MISSING = "missing"
    MISMATCH = "mismatch"  # another key, or tags that verifiers refuse
    TRUNCATED = "truncated"  # a prefix of what was registered
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"  # several TXT records; verifiers may take any
    REVOKED = "revoked"  # p= is empty
    BOGUS = "bogus"  # DNSSEC validation fails
    NO_ANSWER = "no answer"  # so nothing is known
    INCONSISTENT = "inconsistent"  # servers disagree


ACCEPTED = frozenset((Verdict.PUBLISHED, Verdict.DIFFERS))  # by verifiers
_NEVER_URGENT = ACCEPTED | {Verdict.RETIRED, Verdict.NO_ANSWER}
_MAX_LISTED = 20  # servers in a reason


class Urgency(StrEnum):
    """How soon an unpublished record does harm."""

    SIGNING = "signing"  # mail is signed now
    PARTLY = "partly"  # as before, but some servers have a record that verifiers accept
    SOON = "soon"
    NONE = ""


class Finding(NamedTuple):
    """A verdict; `reason` explains a bad one.

    `seen` are those of servers that disagree, or of which some have no answer.
    """

    verdict: Verdict
    reason: str = ""
    seen: frozenset[Verdict] = frozenset()


class ServerFinding(NamedTuple):
    """The finding for one server. `server` is its name and address, or the address as given."""

    server: str
    finding: Finding


class Check(NamedTuple):
    """What DNS has for one registration. `alias` is the target of its CNAME record, or ""."""

    sign_domain: str
    selector: str
    fqdn: str
    start_date: str | None
    enable: bool | None
    finding: Finding
    servers: tuple[ServerFinding, ...] = ()
    alias: str = ""
    urgency: Urgency = Urgency.NONE
    is_delegation_known: bool = True  # else there may be more servers than those asked
    regist_date: str | None = None

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


def is_good(verdict: Verdict, wanted: Verdict) -> bool:
    """Whether nothing is left to do; `wanted` is PUBLISHED, or MISSING for old records."""
    return verdict in (wanted, Verdict.RETIRED)


def combine_findings(
    findings: Sequence[ServerFinding], wanted: Verdict = Verdict.PUBLISHED
) -> Finding:
    """What all servers of a zone have together; `wanted` only if every server has answered."""
    answered = [one for one in findings if one.finding.verdict is not Verdict.NO_ANSWER]
    if len(answered) == len(findings) == 1:
        return answered[0].finding
    failed = [one for one in findings if one.finding.verdict is Verdict.NO_ANSWER]
    if not answered:
        return Finding(Verdict.NO_ANSWER, _reasons(failed))
    counts = Counter(one.finding.verdict for one in answered)
    if len(counts) > 1:
        return Finding(Verdict.INCONSISTENT, _disagreement(counts, findings), _seen(findings))
    finding = answered[0].finding
    if len({one.finding for one in answered}) > 1:
        finding = Finding(finding.verdict, _reasons(answered), _seen(answered))
    if not failed:
        return finding
    if finding.verdict is wanted:
        return Finding(Verdict.NO_ANSWER, f"{wanted} elsewhere; {_reasons(failed)}")
    reason = "; ".join(filter(None, (finding.reason, _reasons(failed))))
    return Finding(finding.verdict, reason, _seen(findings))


def urgency_of(check: Check, now: datetime, warn_within: timedelta) -> Urgency:
    """How soon mail is signed that cannot be verified; `now` has an offset.

    Without a date, signing starts at registration (interface 2.3). A start that is no later has
    begun, whatever the clock here says.
    """
    verdicts = check.finding.seen or {check.finding.verdict}
    if verdicts <= _NEVER_URGENT or check.enable is False:
        return Urgency.NONE
    start, registered = utc_time(check.start_date), utc_time(check.regist_date)
    if start is None or start <= max(now, registered or now):
        return Urgency.PARTLY if verdicts & ACCEPTED else Urgency.SIGNING
    return Urgency.SOON if start - now <= warn_within else Urgency.NONE


def _seen(findings: Iterable[ServerFinding]) -> frozenset[Verdict]:
    return frozenset[Verdict]().union(
        *(one.finding.seen or {one.finding.verdict} for one in findings)
    )


def _reasons(findings: Iterable[ServerFinding]) -> str:
    return _listed(f"{server}: {finding.reason}" for server, finding in findings)


def _disagreement(counts: Counter[Verdict], findings: Sequence[ServerFinding]) -> str:
    """The most frequent verdict with its count, and each server that has another."""
    usual = max(sorted(counts), key=lambda verdict: (counts[verdict], verdict == "published"))
    others = _listed(
        f"{server}: {finding.verdict}"
        for server, finding in findings
        if finding.verdict is not usual
    )
    return f"{usual} at {counts[usual]} of {len(findings)} servers; {others}"


def _listed(texts: Iterable[str]) -> str:
    """A zone may name hundreds of servers; a check has the finding of each."""
    ordered = sorted(texts)
    more = len(ordered) - _MAX_LISTED
    return "; ".join(ordered[:_MAX_LISTED] + ([f"and {more} more"] if more > 0 else []))
