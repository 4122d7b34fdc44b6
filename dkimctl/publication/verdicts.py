"""What DNS says of a registration: whether its record is published as it was registered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dkim import KeyRecordError, parse_key_record, parse_tag_list
from dkimctl.models.registration import utc_time


class Verdict(StrEnum):
    """What one server, or all of them, say of a record."""

    PUBLISHED = "published"
    MISSING = "missing"
    MISMATCH = "mismatch"  # another key, or other tags
    TRUNCATED = "truncated"  # a prefix of what was registered
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"  # several TXT records, of which verifiers may take any
    REVOKED = "revoked"  # an empty p=
    NO_ANSWER = "no answer"  # nothing is known
    INCONSISTENT = "inconsistent"  # servers disagree


class Urgency(StrEnum):
    """How soon a record that is not published does harm."""

    SIGNING = "signing"  # now, without DNS
    SOON = "soon"
    NONE = ""


class Finding(NamedTuple):
    """A verdict; `reason` explains one that is not good."""

    verdict: Verdict
    reason: str = ""


class ServerFinding(NamedTuple):
    """What one server says. `server` is its name and address, or as it was given."""

    server: str
    finding: Finding


class Check(NamedTuple):
    """What DNS says of one registration. `alias` is where CNAME records lead, or ""."""

    sign_domain: str
    selector: str
    fqdn: str
    start_date: str | None
    enable: bool | None
    finding: Finding
    servers: tuple[ServerFinding, ...] = ()
    alias: str = ""
    urgency: Urgency = Urgency.NONE
    is_first_hand: bool = True  # all that was said was said by servers that speak for the zone


# What a tag means where it is absent (RFC 6376 section 3.6.1, RFC 4871 for g=); notes (n=) and
# unknown tags mean nothing to a verifier.
_DEFAULTS = {"v": "DKIM1", "k": "rsa", "g": "*", "h": None, "s": "*", "t": ""}
_LISTS = frozenset("hst")
_FOLDS = str.maketrans("\t\r\n", "   ")  # white space may fold a record (RFC 6376 section 2.8)


def judge_values(expected: str, values: Sequence[str]) -> Finding:
    """What the TXT values at a record's name come to, where `expected` was registered."""
    if not values:
        return Finding(Verdict.MISSING)
    if len(values) > 1:
        is_there = any(_judge(expected, found).verdict is Verdict.PUBLISHED for found in values)
        ours = f"{'one' if is_there else 'none'} of them ours"
        return Finding(
            Verdict.DUPLICATE, f"{len(values)} TXT records stand there, {ours}; only one may"
        )
    return _judge(expected, values[0])


def combined(findings: Sequence[ServerFinding], wanted: Verdict = Verdict.PUBLISHED) -> Finding:
    """What all servers of a zone say together; `wanted` is so only if none is silent."""
    told = [found for found in findings if found.finding.verdict is not Verdict.NO_ANSWER]
    if len(told) == len(findings) == 1:
        return told[0].finding
    silent = [found for found in findings if found.finding.verdict is Verdict.NO_ANSWER]
    if not told:
        return Finding(Verdict.NO_ANSWER, _each(silent))
    counts = Counter(found.finding.verdict for found in told)
    if len(counts) > 1:
        return Finding(Verdict.INCONSISTENT, _disagreement(counts, findings))
    finding = told[0].finding
    if len({found.finding.reason for found in told}) > 1:
        finding = Finding(finding.verdict, _each(told))
    if not silent:
        return finding
    if finding.verdict is wanted:
        return Finding(Verdict.NO_ANSWER, f"{wanted} elsewhere; {_each(silent)}")
    return Finding(finding.verdict, "; ".join(filter(None, (finding.reason, _each(silent)))))


def urgency(check: Check, now: datetime, warn_within: timedelta) -> Urgency:
    """How soon mail is signed that nobody can verify; `now` has an offset.

    Without a date signing starts at registration (interface 2.3).
    """
    if check.finding.verdict in (Verdict.PUBLISHED, Verdict.NO_ANSWER) or check.enable is False:
        return Urgency.NONE
    start = utc_time(check.start_date)
    if start is None or start <= now:
        return Urgency.SIGNING
    return Urgency.SOON if start - now <= warn_within else Urgency.NONE


def _judge(expected: str, value: str) -> Finding:
    if value == expected:
        return Finding(Verdict.PUBLISHED)
    found = value.translate(_FOLDS)
    if not found.strip():
        return Finding(Verdict.MALFORMED, "the TXT record there is empty")
    try:
        tags = _read(found)
    except KeyRecordError as error:
        return _cut(expected, found) or Finding(Verdict.MALFORMED, _oddity(found) or str(error))
    return _judge_tags(_read(expected), tags, expected, found)


def _read(value: str) -> dict[str, str]:
    """The tags of a DKIM key record. Raises KeyRecordError for what is none."""
    tags = parse_tag_list(value)
    if tags.get("v", "DKIM1") != "DKIM1" or ("v" in tags and next(iter(tags)) != "v"):
        raise KeyRecordError("it is no DKIM key record")
    if "p" not in tags:
        raise KeyRecordError("it has no tag p=")
    if not (value.isascii() and value.isprintable()):
        raise KeyRecordError("the value holds characters other than printable ASCII")
    return tags


def _oddity(value: str) -> str:
    """What panels and copying leave in a value."""
    for mark, name in (('"', "quotation marks"), ("\\", "backslashes")):
        if mark in value:
            return f"the value itself holds {name}"
    return ""


def _judge_tags(ours: dict[str, str], theirs: dict[str, str], expected: str, found: str) -> Finding:
    key, published = _squeezed(ours["p"]), _squeezed(theirs["p"])
    if not published:
        return Finding(Verdict.REVOKED, "its key is empty (p=), which revokes it")
    different = [name for name in _DEFAULTS if _meaning(ours, name) != _meaning(theirs, name)]
    if published == key and not different:
        return Finding(Verdict.PUBLISHED)
    if published == key:
        return _cut(expected, found) or Finding(Verdict.MISMATCH, _tags(different))
    if key.startswith(published) and not different:
        return _truncated(len(published), len(key), "characters of the key")
    try:
        parse_key_record(found)
    except KeyRecordError as error:
        if "k" not in different:
            return Finding(Verdict.MALFORMED, _oddity(found) or str(error))
    return Finding(Verdict.MISMATCH, _tags(["p", *different]))


def _cut(expected: str, found: str) -> Finding | None:
    if _squeezed(expected).startswith(_squeezed(found)):
        return _truncated(len(found), len(expected), "characters")
    return None


def _truncated(length: int, whole: int, what: str) -> Finding:
    return Finding(Verdict.TRUNCATED, f"only the first {length} of {whole} {what} are published")


def _tags(names: Sequence[str]) -> str:
    if list(names) == ["p"]:
        return "it is another key (p=)"
    return f"other values of the tags {', '.join(f'{name}=' for name in names)}"


def _meaning(tags: dict[str, str], name: str) -> object:
    value = tags.get(name, _DEFAULTS[name])
    if name in _LISTS and value is not None:
        return frozenset(_squeezed(value).split(":"))
    return value


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _each(findings: Iterable[ServerFinding]) -> str:
    return "; ".join(sorted(f"{found.server}: {found.finding.reason}" for found in findings))


def _disagreement(counts: Counter[Verdict], findings: Sequence[ServerFinding]) -> str:
    """Where it is how, the most frequent by its number alone."""
    usual = max(sorted(counts), key=lambda verdict: (counts[verdict], verdict == "published"))
    number = counts[usual]
    others = [found for found in findings if found.finding.verdict is not usual]
    named = "; ".join(sorted(f"{found.server}: {found.finding.verdict}" for found in others))
    return f"{usual} at {number} of {len(findings)} servers; {named}"
