"""A mail (RFC 5322 section 2), its sender and signatures, and what is said of them."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from dkimctl.dkim import KeyRecordError, parse_tag_list, record_name
from dkimctl.dns.verdicts import Finding
from dkimctl.errors import UsageError
from dkimctl.models import MailStats, Registration
from dkimctl.names import is_name, parse_domain
from dkimctl.text import printable, quoted

_FIELD = rb"([!-9;-~]+)[ \t]*:"  # compiled when it is used
_FIELD_END = rb"\r\n(?![ \t])"
_HINT = 'save the whole mail with its header, as "Show original" or "Save as .eml" does'
_MAX_FROM = 4_096  # characters; reading longer ones takes long
SHA1, RSA, ED25519 = "rsa-sha1", "rsa-sha256", "ed25519-sha256"
_REQUIRED = ("v", "a", "b", "bh", "d", "h", "s")
_MAX_FIELD = 16_384  # characters; a signature has some 1,000
_MAX_SIGNED = 500  # names in h=
_CLOCK_SKEW = 300  # seconds that clocks may differ
_SPACES = r"(?<!\s)\s{1000}"  # dkimpy takes time with the square of their number
_ENCODED = (
    "a server on its way, or its program, has encoded the field (RFC 2047): turn that off there"
)
LATEST = 999_999_999_999  # seconds since 1970
# The tags of a signature: what each may be, and what is said of another value.
_SYNTAX = (
    ("v", "1", "unsupported version {}"),
    ("a", f"{RSA}|{ED25519}", "unsupported algorithm {}"),
    ("c", "(simple|relaxed)(/(simple|relaxed))?", "unsupported canonicalization {}"),
    ("q", "(.*:)?dns/txt(:.*)?", "unsupported query method {}"),
    ("b", r"[A-Za-z0-9+/\s]+[=\s]*", "malformed: b= is not base64"),
    ("bh", r"[A-Za-z0-9+/\s]+[=\s]*", "malformed: bh= is not base64"),
    ("l", "[0-9]{1,76}", "malformed: {} is not a length"),
    ("t", "[0-9]{1,12}", "malformed: {} is not a time"),
    ("x", "[0-9]{1,12}", "malformed: {} is not a time"),
)


class Field(NamedTuple):
    """A header field; `value` is what follows the colon, with all line ends, as CRLF."""

    name: bytes
    value: bytes

    @property
    def key(self) -> bytes:
        """The name in lower case: names ignore case."""
        return self.name.lower()


class Message(NamedTuple):
    """A mail whose lines end with CRLF, as they were when it was signed."""

    fields: Sequence[Field]
    body: bytes

    def all(self, key: bytes) -> list[Field]:
        """The fields with this name, which is in lower case."""
        return [field for field in self.fields if field.key == key]


@lru_cache(maxsize=1)  # a mail may have several signatures
def squeezed(body: bytes) -> bytes:
    """The body without runs of spaces and tabs, and without any at the ends of lines.

    It has the same relaxed form (RFC 6376 section 3.4.4); dkimpy takes time with a run's square.
    """
    return re.sub(rb"[\t ]+", b" ", body).replace(b" \r\n", b"\r\n")


def read_message(data: bytes, file: str) -> Message:
    """The mail in `data`, with any line ends, also from an mbox file. Raises UsageError."""
    lines = data.removeprefix(codecs.BOM_UTF8)
    if b"\n" not in lines:  # as old Macs ended lines; else a bare CR is part of the text
        lines = lines.replace(b"\r", b"\n")
    lines = lines.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    header, _, body = lines.partition(b"\r\n\r\n")
    if lines.startswith(b"\r\n"):
        header = b""
    fields, number = [], 1
    for text in re.split(_FIELD_END, header.removesuffix(b"\r\n")) if header else ():
        match = re.match(_FIELD, text)
        if match is not None:
            fields.append(Field(match[1], text[match.end() :] + b"\r\n"))
        elif number > 1 or not text.startswith(b"From "):  # of mbox
            problem = f"line {number} is not a header field"
            raise UsageError(f"{printable(file)} is not a mail: {problem}", hint=_HINT)
        number += 1 + text.count(b"\r\n")
    if not fields:
        what = "is empty" if not data.strip() else "is not a mail: it begins with an empty line"
        raise UsageError(f"{printable(file)} {what}", hint=_HINT)
    return Message(fields, body)


def from_domains(message: Message) -> list[str]:
    """The domains of the From field in A-labels, each once; of several fields, those of all."""
    from email.utils import getaddresses

    fields = (field.value.decode("utf-8", "replace") for field in message.all(b"from"))
    text = ", ".join(field.replace("\r\n", "").strip() for field in fields)[:_MAX_FROM]
    domains: dict[str, None] = {}
    for _, address in getaddresses([text]):
        with contextlib.suppress(UsageError):
            domains[parse_domain(address.rpartition("@")[2].strip())] = None
    return list(domains)


class Signature(NamedTuple):
    """A signature as it is written, but with a domain name in A-labels and lower case."""

    field: Field
    sign_domain: str
    selector: str
    algorithm: str
    tags: Mapping[str, str]
    fault: str  # why it cannot be valid

    @property
    def record_name(self) -> str:
        return record_name(self.selector, self.sign_domain)

    @property
    def signed_names(self) -> Sequence[str]:
        """The names of the fields in h=, in lower case."""
        return [name.strip().lower() for name in self.tags.get("h", "").split(":")]


def read_signature(field: Field, now: float) -> Signature:
    """The signature in a DKIM-Signature field; `now` is in seconds since 1970."""
    text, fault = field.value.decode("utf-8", "surrogateescape"), ""
    try:
        if len(text) > _MAX_FIELD or re.search(_SPACES, text):
            raise KeyRecordError(f"it has more than {_MAX_FIELD:,} characters, or spaces in a row")
        if text.lstrip().startswith("=?"):
            fault, text = f"malformed: {_ENCODED}", _decoded(text)
        tags = parse_tag_list(text)
    except KeyRecordError as error:
        return Signature(field, "", "", "", {}, fault or f"malformed: {error}")
    written, selector = tags.get("d", ""), tags.get("s", "")
    domain = ""  # if d= is not a domain name
    with contextlib.suppress(UsageError):
        # A-labels (RFC 8616 section 5).
        domain = written.lower() if is_name(written) else parse_domain(written)
    signature = Signature(field, domain or written, selector, tags.get("a", ""), tags, "")
    return signature._replace(fault=fault or next(_faults(signature, domain, now), ""))


def _decoded(text: str) -> str:
    """The text of encoded words (RFC 2047), which names the domain. Raises KeyRecordError."""
    from email.errors import MessageError
    from email.header import decode_header, make_header

    try:
        return str(make_header(decode_header(text.replace("\r\n", "").strip())))
    except (MessageError, LookupError, ValueError):
        raise KeyRecordError(_ENCODED) from None


def _faults(signature: Signature, domain: str, now: float) -> Iterator[str]:
    """What makes the signature invalid, whatever the key is (RFC 6376 section 6.1.1)."""
    tags, algorithm, names = signature.tags, signature.algorithm, signature.signed_names
    if missing := [f"{name}=" for name in _REQUIRED if not tags.get(name)]:
        yield f"malformed: it has no {' and no '.join(missing)}"
    if algorithm == SHA1:
        yield "rsa-sha1 is not secure: receivers must not accept it (RFC 8301)"
    for name, wanted, fault in _SYNTAX:
        if name in tags and not re.fullmatch(wanted, tags[name]):
            yield fault.format(f"{name}={quoted(tags[name])}")
    if not domain:
        yield f"malformed: d={quoted(tags['d'])} is not a domain name"
    if not is_name(signature.record_name):
        yield f"malformed: s={quoted(tags['s'])} is not a selector"
    if "from" not in names:
        yield "the From field is not signed: h= does not name it"
    if len(names) > _MAX_SIGNED:
        yield f"malformed: h= has more than {_MAX_SIGNED} names"
    written = tags["d"].lower()
    agent = tags.get("i", f"@{written}").lower().rpartition("@")[2]
    if agent != written and not agent.endswith(f".{written}"):
        yield f"i={quoted(tags['i'])} is not in its signing domain"
    made, expires = int(tags.get("t", "0")), int(tags.get("x", str(LATEST)))
    if made > now + _CLOCK_SKEW:
        yield f"it was made in the future, on {_date(made)} (t=)"
    if expires < now - _CLOCK_SKEW:
        yield f"it expired on {_date(expires)} (x=)"
    if expires < made:
        yield "malformed: it expires (x=) before it was made (t=)"


def _date(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return f"second {seconds} since 1970"


class MailVerdict(StrEnum):
    """Whether a signature is valid."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"  # no answer of DNS, or nothing here can verify it


class Alignment(StrEnum):
    """How a signing domain relates to that of the From field (RFC 7489 section 3.1.1)."""

    STRICT = "strict"
    RELAXED = "relaxed"  # one is below the other
    POSSIBLE = "possible"  # below the same organizational domain, or public suffix such as co.uk
    NONE = "none"


ALIGNED = (Alignment.STRICT, Alignment.RELAXED)


class KnownKey(NamedTuple):
    """What the ledger has of a key."""

    stage: str
    registration: Registration | None = None  # None: it was removed
    removed: Registration | None = None  # as it was registered, if that is known
    replaced_at: datetime | None = None  # since when one that was removed should sign no mail
    mail: MailStats | None = None  # by DMARC reports


class CheckedSignature(NamedTuple):
    """A signature, and what was found."""

    sign_domain: str
    selector: str
    algorithm: str
    verdict: MailVerdict
    reason: str = ""  # of a bad verdict
    key_len: int | None = None  # of the key in DNS; None: not known
    notes: Sequence[str] = ()
    alignment: Alignment = Alignment.NONE
    is_ours: bool = False  # its domain is registered
    known: KnownKey | None = None  # if it is in the ledger
    in_dns: Finding | None = None  # what check-dns says of it, if it has a record
    signs_again: bool = False  # its key was removed, and has signed it nevertheless


class MailReport(NamedTuple):
    """The signatures of a mail, those of registered domains first."""

    file: str
    from_domains: Sequence[str]  # of its From field
    signatures: Sequence[CheckedSignature]
    missing: Sequence[str] = ()  # registered From domains that no signature is aligned with
    unverified: int = 0  # signatures that were left out, since there are so many
    of_ours: bool = False  # some of them are of registered domains

    @property
    def verdict(self) -> MailVerdict:
        """PASS if all signatures of registered domains pass, and at least one of all."""
        verdicts = {signature.verdict for signature in self.signatures}
        registered = {signature.verdict for signature in self.signatures if signature.is_ours}
        if MailVerdict.FAIL in registered or self.of_ours or not verdicts:
            return MailVerdict.FAIL
        if MailVerdict.UNKNOWN in registered:
            return MailVerdict.UNKNOWN
        order = (MailVerdict.PASS, MailVerdict.UNKNOWN, MailVerdict.FAIL)
        return next(verdict for verdict in order if verdict in verdicts)


def alignment(sign_domain: str, from_domains: Sequence[str]) -> Alignment:
    """How a signing domain is aligned with the From field."""
    alignments = {Alignment.NONE}
    for domain in from_domains:
        if sign_domain == domain:
            alignments.add(Alignment.STRICT)
        elif sign_domain.endswith(f".{domain}") or domain.endswith(f".{sign_domain}"):
            alignments.add(Alignment.RELAXED)
        elif sign_domain.split(".")[-2:] == domain.split(".")[-2:]:
            alignments.add(Alignment.POSSIBLE)
    return next(alignment for alignment in Alignment if alignment in alignments)
