"""Verdicts: whether the record in DNS is the one that was registered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dkim import KeyRecordError, parse_key_record, parse_tag_list
from dkimctl.models.registration import utc_time


class Verdict(StrEnum):
    """What one server, or all of them together, have for a record."""

    PUBLISHED = "published"
    RETIRED = "retired"  # missing, as it should be
    DIFFERS = "differs"  # verifiers accept it, but its tags are not as registered
    MISSING = "missing"
    MISMATCH = "mismatch"  # another key, or other tags
    TRUNCATED = "truncated"  # a prefix of what was registered
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"  # several TXT records; verifiers may take any
    REVOKED = "revoked"  # p= is empty
    BOGUS = "bogus"  # DNSSEC validation fails
    NO_ANSWER = "no answer"  # so nothing is known
    INCONSISTENT = "inconsistent"  # servers disagree


_NEVER_URGENT = frozenset((Verdict.PUBLISHED, Verdict.RETIRED, Verdict.DIFFERS, Verdict.NO_ANSWER))


class Urgency(StrEnum):
    """How soon an unpublished record does harm."""

    SIGNING = "signing"  # mail is signed now
    SOON = "soon"
    NONE = ""


class Finding(NamedTuple):
    """A verdict; `reason` explains a bad one."""

    verdict: Verdict
    reason: str = ""


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
    is_first_hand: bool = True  # every answer came from an authoritative server
    regist_date: str | None = None


# The values of absent tags (RFC 6376 section 3.6.1, RFC 4871 for g=). Verifiers ignore notes (n=)
# and unknown tags.
_DEFAULTS = {"v": "DKIM1", "k": "rsa", "g": "*", "h": None, "s": "*", "t": ""}
_LIST_TAGS = frozenset("hst")
_FOLDS = str.maketrans("\t\r\n", "   ")  # white space may fold a record (RFC 6376 section 2.8)


def is_good(verdict: Verdict, wanted: Verdict) -> bool:
    """Whether nothing is left to do; `wanted` is PUBLISHED, or MISSING for old records."""
    return verdict in (wanted, Verdict.RETIRED)


def compare_values(expected: str, values: Sequence[str]) -> Finding:
    """Compare the TXT values at a record's name with the registered value."""
    if not values:
        return Finding(Verdict.MISSING)
    if len(values) > 1:
        verdicts = {_compare(expected, value).verdict for value in values}
        ours = f"{'one' if Verdict.PUBLISHED in verdicts else 'none'} of them ours"
        return Finding(Verdict.DUPLICATE, f"{len(values)} TXT records, {ours}; only one is allowed")
    return _compare(expected, values[0])


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
        return Finding(Verdict.INCONSISTENT, _disagreement(counts, findings))
    finding = answered[0].finding
    if len({one.finding.reason for one in answered}) > 1:
        finding = Finding(finding.verdict, _reasons(answered))
    if not failed:
        return finding
    if finding.verdict is wanted:
        return Finding(Verdict.NO_ANSWER, f"{wanted} elsewhere; {_reasons(failed)}")
    return Finding(finding.verdict, "; ".join(filter(None, (finding.reason, _reasons(failed)))))


def urgency_of(check: Check, now: datetime, warn_within: timedelta) -> Urgency:
    """How soon mail is signed that cannot be verified; `now` has an offset.

    Without a date, signing starts at registration (interface 2.3). A start that is no later has
    begun, whatever the clock here says.
    """
    if check.finding.verdict in _NEVER_URGENT or check.enable is False:
        return Urgency.NONE
    start, registered = utc_time(check.start_date), utc_time(check.regist_date)
    if start is None or start <= max(now, registered or now):
        return Urgency.SIGNING
    return Urgency.SOON if start - now <= warn_within else Urgency.NONE


def _compare(expected: str, value: str) -> Finding:
    if value == expected:
        return Finding(Verdict.PUBLISHED)
    unfolded = value.translate(_FOLDS)
    if not unfolded.strip():
        return Finding(Verdict.MALFORMED, "the TXT record there is empty")
    try:
        tags = _read_tags(unfolded)
    except KeyRecordError as error:
        reason = _stray_characters(unfolded) or str(error)
        return _truncation(expected, unfolded) or Finding(Verdict.MALFORMED, reason)
    return _compare_tags(_read_tags(expected), tags, expected, unfolded)


def _read_tags(value: str) -> dict[str, str]:
    """The tags of a DKIM key record. Raises KeyRecordError."""
    tags = parse_tag_list(value)
    if tags.get("v", "DKIM1") != "DKIM1" or ("v" in tags and next(iter(tags)) != "v"):
        raise KeyRecordError("it is not a DKIM key record")
    if "p" not in tags:
        raise KeyRecordError("it has no tag p=")
    if not (value.isascii() and value.isprintable()):
        raise KeyRecordError("the value holds characters other than printable ASCII")
    return tags


def _stray_characters(value: str) -> str:
    """The fault that copying, or a DNS panel, has left in a value; or ""."""
    for mark, name in (('"', "quotation marks"), ("\\", "backslashes")):
        if mark in value:
            return f"the value itself holds {name}"
    return ""


def _compare_tags(
    ours: dict[str, str], theirs: dict[str, str], expected: str, value: str
) -> Finding:
    key, published = _without_spaces(ours["p"]), _without_spaces(theirs["p"])
    if not published:
        return Finding(Verdict.REVOKED, "its key is empty (p=), which revokes it")
    different = [name for name in _DEFAULTS if _meaning(ours, name) != _meaning(theirs, name)]
    if published == key and not different:
        return Finding(Verdict.PUBLISHED)
    if published == key:
        return _truncation(expected, value) or Finding(Verdict.MISMATCH, _other_values(different))
    if key.startswith(published) and not different:
        return _truncated(len(published), len(key), "characters of the key")
    try:
        parse_key_record(value)
    except KeyRecordError as error:
        if "k" not in different:
            return Finding(Verdict.MALFORMED, _stray_characters(value) or str(error))
    return Finding(Verdict.MISMATCH, _other_values(["p", *different]))


def _truncation(expected: str, value: str) -> Finding | None:
    if _without_spaces(expected).startswith(_without_spaces(value)):
        return _truncated(len(value), len(expected), "characters")
    return None


def _truncated(length: int, whole: int, what: str) -> Finding:
    return Finding(Verdict.TRUNCATED, f"only the first {length} of {whole} {what} are published")


def _other_values(names: Sequence[str]) -> str:
    if list(names) == ["p"]:
        return "it is another key (p=)"
    return f"other values of the tags {', '.join(f'{name}=' for name in names)}"


def _meaning(tags: dict[str, str], name: str) -> object:
    value = tags.get(name, _DEFAULTS[name])
    if name in _LIST_TAGS and value is not None:
        return frozenset(_without_spaces(value).split(":"))
    return value


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _reasons(findings: Iterable[ServerFinding]) -> str:
    return "; ".join(sorted(f"{server}: {finding.reason}" for server, finding in findings))


def _disagreement(counts: Counter[Verdict], findings: Sequence[ServerFinding]) -> str:
    """The most frequent verdict with its count, and each server that has another."""
    usual = max(sorted(counts), key=lambda verdict: (counts[verdict], verdict == "published"))
    others = sorted(
        f"{server}: {finding.verdict}"
        for server, finding in findings
        if finding.verdict is not usual
    )
    return f"{usual} at {counts[usual]} of {len(findings)} servers; {'; '.join(others)}"
