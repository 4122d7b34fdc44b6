"""Verdicts: whether the record in DNS is the one that was registered."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from dkimctl import dkim
from dkimctl.dkim import KeyRecordError, parse_public_key, parse_tag_list, tag_items
from dkimctl.errors import LedgerError
from dkimctl.models import Registration, RegistrationKey, key_of, utc_time
from dkimctl.text import few, quoted

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger


class Verdict(StrEnum):
    """What one server, or all of them together, have for a record."""

    PUBLISHED = "published"
    RETIRED = "retired"  # missing, as it should be
    DIFFERS = "differs"  # most verifiers accept it, but it is not as registered
    MISSING = "missing"
    MISMATCH = "mismatch"  # another key, or tags that verifiers refuse
    TRUNCATED = "truncated"  # a prefix of what was registered
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"  # several TXT records; verifiers may take any
    REVOKED = "revoked"  # p= is empty
    DENIED = "denied"  # it is there, but an answer for another name says that it is not
    BOGUS = "bogus"  # DNSSEC validation fails
    NO_ANSWER = "no answer"  # so nothing is known
    INCONSISTENT = "inconsistent"  # servers disagree


ACCEPTED = frozenset((Verdict.PUBLISHED, Verdict.DIFFERS))  # by verifiers
_MAX_LISTED = 20  # servers in a reason


class Urgency(StrEnum):
    """How soon an unpublished record does harm."""

    SIGNING = "signing"  # mail is signed now
    PARTLY = "partly"  # as before, but some servers have a record that verifiers accept
    SOON = "soon"
    NONE = ""


class Finding(NamedTuple):
    verdict: Verdict
    reason: str = ""  # of a bad verdict
    seen: frozenset[Verdict] = frozenset()  # of servers that disagree, or do not all answer


class ServerFinding(NamedTuple):
    """The finding for one server."""

    server: str  # its name and address, or the address as given
    finding: Finding

    @property
    def seen(self) -> frozenset[Verdict]:
        return self.finding.seen or frozenset((self.finding.verdict,))


class Check(NamedTuple):
    """What DNS has for one registration."""

    sign_domain: str
    selector: str
    fqdn: str
    start_date: str | None
    enable: bool | None
    finding: Finding
    servers: tuple[ServerFinding, ...] = ()
    alias: str = ""  # the target of its CNAME record
    alias_end: str = ""  # the name that its aliases lead to; "" if that is not one
    urgency: Urgency = Urgency.NONE
    zone: str = ""  # that the record is in, or belongs into; "": not known
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
    if len(findings) == 1 and findings[0].finding.verdict is not Verdict.NO_ANSWER:
        return findings[0].finding
    failed = [server for server in findings if server.finding.verdict is Verdict.NO_ANSWER]
    answered = [server for server in findings if server not in failed]
    if not answered:
        return Finding(Verdict.NO_ANSWER, _reasons(failed))
    seen = frozenset[Verdict]().union(*(server.seen for server in findings))
    counts = Counter(server.finding.verdict for server in answered)
    if len(counts) > 1:
        # The most frequent verdict with its count, and each server that has another.
        usual = max(sorted(counts), key=lambda verdict: (counts[verdict], verdict == "published"))
        others = ((name, each.verdict) for name, each in findings if each.verdict is not usual)
        listed = _listed(f"{server}: {verdict}" for server, verdict in others)
        reason = f"{usual} at {counts[usual]} of {len(findings)} servers; {listed}"
        return Finding(Verdict.INCONSISTENT, reason, seen)
    finding = answered[0].finding
    if failed and finding.verdict is wanted:
        return Finding(Verdict.NO_ANSWER, f"{wanted} elsewhere; {_reasons(failed)}")
    if len({server.finding for server in answered}) > 1:
        finding = Finding(finding.verdict, _reasons(answered), seen)
    if failed:
        reason = "; ".join(filter(None, (finding.reason, _reasons(failed))))
        finding = Finding(finding.verdict, reason, seen)
    return finding


def urgency_of(check: Check, now: datetime, warn_within: timedelta) -> Urgency:
    """How soon mail is signed that cannot be verified; `now` has an offset.

    Without a date, signing starts at registration (interface 2.3). A start that is not later has
    begun, whatever the clock here says.
    """
    verdicts = check.finding.seen or {check.finding.verdict}
    if verdicts <= ACCEPTED | {Verdict.RETIRED, Verdict.NO_ANSWER} or check.enable is False:
        return Urgency.NONE
    start, registered = utc_time(check.start_date), utc_time(check.regist_date)
    if start is None or start <= max(now, registered or now):
        return Urgency.PARTLY if verdicts & ACCEPTED else Urgency.SIGNING
    return Urgency.SOON if start - now <= warn_within else Urgency.NONE


def _reasons(findings: Iterable[ServerFinding]) -> str:
    return _listed(f"{server}: {finding.reason}" for server, finding in findings)


def _listed(texts: Iterable[str]) -> str:
    """A zone may name hundreds of servers; a check has the finding of each."""
    ordered = sorted(texts)
    more = len(ordered) - _MAX_LISTED
    return "; ".join(ordered[:_MAX_LISTED] + ([f"and {more} more"] if more > 0 else []))


class Looks:
    """The looks to record in the ledger: the verdicts of checks that say something for certain.

    At the records of the keys in `counted` (None: at all). A check without an answer is not a look.
    """

    def __init__(self, counted: Container[RegistrationKey] | None = None) -> None:
        self._counted = counted
        #: Whether our clock may be wrong: then records count as published since now at most.
        self.restarts = False
        #: What the last look at each record found.
        self.latest: dict[RegistrationKey, Verdict] = {}
        #: What an earlier look found, at records that are published now, and were not then.
        self.breaks: dict[RegistrationKey, Verdict] = {}

    def add(self, check: Check) -> None:
        """Take in a check; the last check of a record counts."""
        key, verdict = check.key, check.finding.verdict
        is_counted = self._counted is None or key in self._counted
        if not is_counted or verdict is Verdict.NO_ANSWER:
            return
        all_seen = frozenset[Verdict]().union(*(server.seen for server in check.servers))
        if not check.is_delegation_known or Verdict.NO_ANSWER in all_seen:
            # Some servers have not answered, or are not known.
            if verdict is Verdict.PUBLISHED:
                return
            verdict = Verdict.INCONSISTENT if verdict is Verdict.MISSING else verdict
        before = self.latest.get(key, Verdict.INCONSISTENT if self.restarts else Verdict.PUBLISHED)
        if verdict is Verdict.PUBLISHED and before is not Verdict.PUBLISHED:
            self.breaks[key] = before
        self.latest[key] = verdict


@contextmanager
def recording_looks(
    open_ledger: Callable[[], Ledger], on_failure: Callable[[LedgerError], None],
    counted: Container[RegistrationKey] | None = None,
) -> Iterator[Looks]:  # fmt: skip
    """Looks that are written into the ledger at the end, even if an error ends the checks."""
    looks = Looks(counted)
    try:
        yield looks
    finally:
        if looks.latest:
            try:
                with open_ledger() as ledger:
                    ledger.note_looks(looks.latest, looks.breaks, restarts=looks.restarts)
            except LedgerError as error:
                on_failure(error)


def same_records(ledger: Ledger, registrations: Iterable[Registration]) -> set[RegistrationKey]:
    """The keys of those `registrations` that the ledger has with the same record."""

    def records(every: Iterable[Registration]) -> set[tuple[RegistrationKey, str, str]]:
        known = ((each.key, each.record) for each in every if each.record)
        return {(key, record.fqdn.lower(), record.value) for key, record in known}

    return {key for key, _, _ in records(registrations) & records(ledger.ours())}


# The values of absent tags (RFC 6376 section 3.6.1, RFC 4871 for g=). Verifiers ignore notes (n=)
# and unknown tags.
_DEFAULTS = {"k": "rsa", "g": "*", "h": None, "s": "*", "t": ""}
_FOLDS = str.maketrans("\t\r\n", "   ")  # white space may fold a record (RFC 6376 section 2.8)
_ODD_SPACES = str.maketrans("", "", "\v\f")  # which verifiers take as white space around tags
_MAX_PARTS = 4  # of a key; any others are not put together
_MAX_READ = 1024  # characters; OpenDKIM ignores the rest


def compare_values(expected: str, values: Sequence[str]) -> Finding:
    """Compare the TXT values at a record's name with the registered value, a sound key record.

    A fault is what a verifier refuses: OpenDKIM or dkimpy does, or Mail::DKIM does, and RFC 6376
    says that it must. All are more tolerant than the grammar; what they accept `differs` at most.
    """
    if not values:
        return Finding(Verdict.MISSING)
    if len(values) > 1:
        return Finding(Verdict.DUPLICATE, _what_several_are(expected, values))
    if values[0] == expected:
        return Finding(Verdict.PUBLISHED)
    value = values[0].translate(_FOLDS)
    finding = _compare_unfolded(expected, value)
    if finding.verdict in (Verdict.MALFORMED, Verdict.MISMATCH):
        finding = finding._replace(reason=_damage(expected, value) or finding.reason)
    if finding.verdict in ACCEPTED and len(value) > _MAX_READ:
        beginning = _compare_unfolded(expected, value[:_MAX_READ])
        if beginning.verdict not in ACCEPTED:
            reason = f"some verifiers read only its first {_MAX_READ} characters, and refuse those"
            return Finding(Verdict.MALFORMED, reason)
    return finding


def _what_several_are(expected: str, values: Sequence[str]) -> str:
    def is_ours(value: str) -> bool:
        return compare_values(expected, [value]).verdict in ACCEPTED

    what = f"{len(values)} TXT records"
    if any(map(is_ours, values)):
        return f"{what}, one of them ours; only one is allowed"
    for size in range(2, len(values) + 1 if len(values) <= _MAX_PARTS else 0):
        if any(is_ours("".join(parts)) for parts in itertools.permutations(values, size)):
            return f"{what}, {size} of them our key in parts: enter those as strings of one record"
    return f"{what}, none of them ours; only one is allowed"


def _damage(expected: str, value: str) -> str:
    """What was done to our value on its way into DNS, if that can be told, and what to do."""
    whole, key = _without_spaces(expected), _without_spaces(parse_tag_list(expected)["p"])
    found = re.search(r"(?:^|;)\s*p\s*=([^;]*)", value, re.IGNORECASE)
    there = _without_spaces(found[1] if found else value).replace('"', "")
    if not found and there == key:
        return "it is the key alone: enter the whole value, with v=DKIM1 and p="
    if there != key and re.sub("-----[A-Z]+-----", "", there) == key:
        return "its p= has the lines BEGIN and END PUBLIC KEY: enter only what is between them"
    if there != key and there == key.replace("+", ""):
        return "its p= lacks the plus signs, which web forms may take for blanks: enter it again"
    if there != key and key in (unquote(there), there.translate(str.maketrans("-_", "+/"))):
        return "its p= is encoded as in a URL: enter the value as it is"
    for ours, theirs in ((key, there), (whole, _without_spaces(value))):
        if ours != theirs and ours.lower() == theirs.lower():
            return "its upper and lower case differ from the registered key: copy it again"
    return ""


def _compare_unfolded(expected: str, value: str) -> Finding:
    if not value.strip():
        return Finding(Verdict.MALFORMED, "the TXT record there is empty")
    try:
        tags = parse_tag_list(value, tolerant=True)
        if tags.get("v", "DKIM1") != "DKIM1":
            raise KeyRecordError("it is not a DKIM key record")
        if "p" not in tags:
            raise KeyRecordError("it has no tag p=")
        plain = value.translate(_ODD_SPACES)
        is_printable = plain.isascii() and plain.isprintable()
        if not is_printable or tags["p"] != tags["p"].translate(_ODD_SPACES):
            raise KeyRecordError("the value holds characters other than printable ASCII")
        notes = [] if plain == value else ["it holds a vertical tab or a form feed"]
        return _compare_tags(parse_tag_list(expected), tags, notes)
    except KeyRecordError as error:
        whole, part = _without_spaces(expected), _without_spaces(value)
        if len(part) < len(whole) and whole.startswith(part):
            return _truncated(len(part), len(whole), "characters, without spaces,")
        # What copying, or a DNS panel, has left in a value.
        for mark, name in (('"', "quotation marks"), ("\\", "backslashes")):
            if mark in value:
                return Finding(Verdict.MALFORMED, f"the value itself holds {name}")
        return Finding(Verdict.MALFORMED, str(error))


def _compare_tags(ours: Mapping[str, str], theirs: Mapping[str, str], notes: list[str]) -> Finding:
    """`notes` has what else is odd. Raises KeyRecordError if the key cannot be read."""
    registered, written = _without_spaces(ours["p"]), _without_spaces(theirs["p"])
    published = written.replace('"', "")  # as all verifiers do
    if not published:
        return Finding(Verdict.REVOKED, "its key is empty (p=), which revokes it")
    different = [name for name in _DEFAULTS if _meaning(ours, name) != _meaning(theirs, name)]
    refused = [why for name in different if (why := _refusal(name, theirs))]
    if "k" in different:
        return Finding(Verdict.MISMATCH, "; ".join(refused))
    finding = _compare_keys(registered, published)
    notes += [finding.reason] if finding.reason else []
    if written != published:
        notes.append("its p= holds quotation marks, which rspamd refuses")
    if refused and finding.verdict in (*ACCEPTED, Verdict.MISMATCH):
        return Finding(Verdict.MISMATCH, "; ".join([*refused, *notes]))
    if finding.verdict not in ACCEPTED:
        return finding
    # What is not as registered, though verifiers accept it.
    if different:
        notes.append(f"not as registered: {', '.join(f'{name}=' for name in different)}")
    if "t" in different and "y" in tag_items(theirs.get("t", "")) - tag_items(ours.get("t", "")):
        notes.append("t=y is for testing: receivers treat such mail like unsigned mail")
    if "v" in theirs and next(iter(theirs)) != "v":
        notes.append("v= is not the first tag")
    if names := [quoted(name) for name in theirs if not dkim.is_tag_name(name)]:
        notes.append(f"not a valid tag name: {few(names)}")
    if not notes:
        return finding
    # What only Mail::DKIM refuses: it compares g= and the items of h= as they are written.
    refusing = ["g="] if "g" in different else []
    refusing += ["h="] if "h" in different and "sha256" not in theirs["h"].split(":") else []
    refusing += ["p="] if len(published) > len(dkim.padded(published)) else []
    who = "dkimpy, OpenDKIM and Mail::DKIM accept it, but"
    if refusing:
        who = f"dkimpy and OpenDKIM accept it, Mail::DKIM refuses its {' and '.join(refusing)};"
    return Finding(Verdict.DIFFERS, f"{who} {'; '.join(notes)}")


def _refusal(name: str, tags: Mapping[str, str]) -> str:
    """Why verifiers refuse the tag, or "" (RFC 6376 sections 3.6.1 and 6.1.2)."""
    if name == "k":
        return f"its key type is k={quoted(tags['k'])}, not rsa"
    if name == "h" and "h" in tags and "sha256" not in tag_items(tags["h"]):
        return "its h= does not allow sha256, with which mail is signed"
    if name == "s" and "s" in tags and tags["s"] not in ("*", "email"):  # dkimpy refuses lists
        return f"some verifiers refuse its s={quoted(tags['s'])}: only email and * are safe"
    return ""


def _compare_keys(registered: str, published: str) -> Finding:
    """Compare two values of p=, without spaces. Raises KeyRecordError."""
    if published == registered:
        return Finding(Verdict.PUBLISHED)
    if registered.startswith(published):
        return _truncated(len(published), len(registered), "characters of the key")
    sound = dkim.padded(published)
    has_more = len(published) > len(sound)  # padding than it needs; less is an error
    key = parse_public_key(sound if has_more else published, may_have_more=True)
    ours = parse_public_key(registered)
    if key.der == ours.der:
        odd = "its p= ends in too many equals signs" if has_more else ""
        if len(sound) * 3 // 4 - sound.count("=") > len(key.der):
            odd = "its p= has bytes after the key"
        return Finding(Verdict.DIFFERS, odd) if odd else Finding(Verdict.PUBLISHED)
    if key._replace(der=ours.der) == ours:
        reason = "its p= is our key in an encoding that some verifiers cannot read"
        return Finding(Verdict.MALFORMED, reason)
    return Finding(Verdict.MISMATCH, f"another key: {key}; registered: {ours}")


def _truncated(length: int, whole: int, what: str) -> Finding:
    return Finding(Verdict.TRUNCATED, f"only the first {length} of {whole} {what} are published")


def _meaning(tags: Mapping[str, str], name: str) -> object:
    value = tags.get(name, _DEFAULTS[name])
    return tag_items(value) if name in "hst" and value is not None else value  # these are lists


def _without_spaces(text: str) -> str:
    return "".join(text.split())
