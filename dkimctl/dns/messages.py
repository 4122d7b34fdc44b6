"""DNS messages: questions, their answers (RFC 1035 section 4), and the log of both."""

from __future__ import annotations

import base64
import functools
import hashlib
import logging
import os
import struct
import time
from typing import Any, NamedTuple

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
from dns.edns import CookieOption
from dns.rdataclass import IN

from dkimctl.addresses import Address
from dkimctl.text import few, quoted

# Record types (RFC 1035 section 3.2.2, RFC 3596, RFC 6672, RFC 4034, RFC 9460).
A, NS, CNAME, SOA, MX, TXT, AAAA, DNAME, DS, HTTPS = 1, 2, 5, 6, 15, 16, 28, 39, 43, 65
RRSIG, NSEC, NSEC3 = 46, 47, 50  # RFC 4034, RFC 5155
# RCODEs (RFC 1035 section 4.1.1; RFC 6891 section 9).
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
BADCOOKIE = 23  # RFC 7873 section 8
USEFUL = frozenset((NOERROR, NXDOMAIN))
# What servers that cannot read EDNS answer to it (RFC 6891 sections 6.1.3 and 7).
EDNS_REFUSALS = frozenset((FORMERR, SERVFAIL, NOTIMP, REFUSED, BADVERS))
_OPT_TYPE = 41
_PAYLOAD = 1232  # bytes; larger UDP answers are fragmented, and fragments are often lost
_HEADER = struct.Struct("!6H")
_TYPE_AND_CLASS = struct.Struct("!2H")
_TXT_IN = b"\0\x10\0\x01"  # type and class
# Header flags.
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _DESIRED, _AVAILABLE = 0x8000, 0x0400, 0x0200, 0x0100, 0x80
DNSSEC_OK = 0x10000  # beyond the header: DO of the OPT record (RFC 3225), sent with a cookie
AUTHENTIC, CHECKING_DISABLED = 0x20, 0x10  # AD and CD (RFC 4035 section 3, RFC 6840 section 5.7)
_RCODE, _OPCODE = 0x000F, 0x7800
_OPT_HEAD = struct.Struct("!BHHIH")  # RFC 6891 section 6.1.2
_OPT = _OPT_HEAD.pack(0, _OPT_TYPE, _PAYLOAD, 0, 0)
_DO, _COOKIE_TYPE, _CLIENT_COOKIE = 0x8000, 10, 8  # bytes of our cookie, without the server's
_RECORD = struct.Struct("!2HIH")  # type, class, TTL, length
_NSEC3_HEAD = struct.Struct("!2BHB")  # algorithm, flags, iterations, length of the salt (RFC 5155)
_MAX_PROOFS = 8  # NSEC and NSEC3 records; a denial has three at most
_MAX_ITERATIONS = 150  # resolvers ignore records with more (RFC 9276 section 3.2)
MAX_ALIASES = 11  # in one chain, as Unbound follows them
_TXT_ANSWER = b"\xc0\x0c" + _TXT_IN  # the question's own name
_POINTER = 0xC000  # to a name before (section 4.1.4)
_RRSIG_ANSWER = b"\xc0\x0c\x00\x2e\x00\x01"
_SOA_IN = b"\0\6\0\1"
OPT_START = b"\0\0\x29"  # root, OPT

# dnspython caches a type by the first class it sees: a record of class ANY that came first would
# make every later address unreadable.
for _rdtype in (A, AAAA):
    dns.rdata.get_rdata_class(IN, _rdtype)  # type: ignore[no-untyped-call]

_log = logging.getLogger("dkimctl.dns")


class Question(NamedTuple):
    """The question section of a message, its record type, and header flags (AUTHENTIC ...)."""

    section: bytes
    rdtype: int
    flags: int = 0
    needs_message: bool = False  # the answer has one, also where dnspython need not read it

    @property
    def name(self) -> dns.name.Name:
        return dns.name.from_wire(self.section, 0)[0]

    def __str__(self) -> str:
        return f"{dns.rdatatype.RdataType(self.rdtype).name} {to_text(self.name)}"


class Answer(NamedTuple):
    """A server's answer to a question; names are without trailing dot."""

    rcode: int
    is_authoritative: bool
    is_recursive: bool
    #: The joined strings of each TXT record (RFC 6376 section 3.6.2.2), at the end of the aliases.
    values: tuple[bytes, ...] = ()
    alias: str = ""  # the target of the first CNAME
    zone: str = ""  # the zone without such a record, if the answer names it
    delegated: str = ""  # the zone that a referral names
    message: dns.message.Message | None = None  # if dnspython had to read it
    is_validated: bool = False  # by a resolver, with DNSSEC
    bogus: str = ""  # why it could not validate, but should
    is_wildcard: bool = False  # its signature is that of a wildcard (RFC 4034 section 3.1.3)
    wire: bytes = b""  # the message, if dnspython has not read it

    @property
    def texts(self) -> list[str]:
        return [value.decode("utf-8", "surrogateescape") for value in self.values]

    def data(self, rdtype: int) -> list[Any]:
        """The data of the answer section's records of this type, in class IN alone."""
        rrsets = self.message.answer if self.message else ()
        return [data for rrset in rrsets if rrset.rdtype == rdtype and rrset.rdclass == IN
                for data in rrset]  # fmt: skip


class TruncatedAnswer(Exception):
    """The answer does not fit into a datagram: ask over TCP."""


def make_question(name: dns.name.Name | str, rdtype: int) -> Question:
    """The question for records of a name, with or without trailing dot."""
    if isinstance(name, str):
        name = dns.name.from_text(name)
    return Question(name.to_digestable() + _TYPE_AND_CLASS.pack(rdtype, IN), rdtype)


def make_txt_question(fqdn: str) -> Question:
    """The question for the TXT records of a name with plain labels (names.is_name)."""
    return Question(plain_name(fqdn) + _TXT_IN, TXT)


def soa_at(question: Question, *, above: bool = False) -> Question:
    """The question for the SOA record of the same name, or of the name above."""
    start = 1 + question.section[0] if above else 0
    name = question.section[start : -_TYPE_AND_CLASS.size]
    return question._replace(section=name + _SOA_IN, rdtype=SOA)


def plain_name(fqdn: str) -> bytes:
    """A name with plain labels (names.is_name) on the wire, in lower case."""
    labels = [bytes((len(label),)) + label for label in fqdn.lower().encode("ascii").split(b".")]
    return b"".join(labels) + b"\0"


def random_id() -> int:
    """A message ID that cannot be guessed (RFC 5452)."""
    return int.from_bytes(os.urandom(2))


def encode(
    message_id: int, question: Question, *, recursion: bool, edns: bool = True, cookie: bytes = b""
) -> bytes:
    """The query message; the ID has 16 bits. The cookie (RFC 7873) goes with DNSSEC_OK alone."""
    flags = question.flags & 0xFFFF | (_DESIRED if recursion else 0)
    head = _HEADER.pack(message_id, flags, 1, 0, 0, 1 if edns else 0)
    opt = _OPT if edns else b""
    if opt and question.flags & DNSSEC_OK:
        option = struct.pack("!2H", _COOKIE_TYPE, len(cookie)) + cookie if cookie else b""
        opt = _OPT_HEAD.pack(0, _OPT_TYPE, _PAYLOAD, _DO, len(option)) + option
    return head + question.section + opt


def with_server_cookie(cookie: bytes, answer: Answer) -> bytes:
    """Our cookie and the server's, which it wants to see in questions, if it sent both."""
    ours = cookie[:_CLIENT_COOKIE]
    for option in answer.message.options if answer.message else ():
        if isinstance(option, CookieOption) and option.client == ours:  # RFC 7873 section 5.3
            return ours + option.server
    return cookie


def decode(wire: bytes, question: Question) -> Answer | None:
    """The answer in a message; None if it does not answer the question. Raises TruncatedAnswer."""
    if len(wire) < _HEADER.size:
        return None
    _, flags, questions, answers, authority, _ = _HEADER.unpack_from(wire)
    start = _HEADER.size + len(question.section)
    # Some servers leave the question out of a refusal.
    is_ours = flags & _RCODE
    if questions:
        is_ours = wire[_HEADER.size : start].lower() == question.section.lower()
    if not flags & _RESPONSE or not is_ours or flags & _OPCODE:
        return None
    if flags & _TRUNCATED:
        raise TruncatedAnswer
    if questions and question.rdtype in (TXT, SOA) and not question.needs_message:
        # The usual answers, read ten times as fast as dnspython does: one TXT record, or none and
        # the SOA record of the zone.
        value, zone, rcode = None, None, flags & _RCODE
        if answers in (1, 2) and rcode == NOERROR:
            value = _only_value(wire, start, question if answers == 2 else None)
        elif (answers, authority) == (0, 1) and rcode in USEFUL:
            zone = _negative_zone(wire, start, question)
        elif question.flags & DNSSEC_OK and question.rdtype == SOA and not answers:
            zone = "" if rcode in USEFUL else None
        if value is not None or zone is not None:
            return Answer(
                rcode, bool(flags & _AUTHORITATIVE), bool(flags & _AVAILABLE),
                () if value is None else (value,), zone=zone or "",
                is_validated=bool(flags & AUTHENTIC), wire=wire,
            )  # fmt: skip
    read = _read if len(wire) <= _PAYLOAD else _read.__wrapped__  # large ones would fill memory
    try:
        return read(wire[2:], question)
    except (dns.exception.DNSException, ValueError, NotImplementedError):
        return None


def _only_value(wire: bytes, start: int, signed: Question | None) -> bytes | None:
    """The value of the only record, as in nearly all TXT answers, `signed` by no wildcard."""
    if wire[start : start + len(_TXT_ANSWER)] != _TXT_ANSWER:
        return None
    at = start + 12  # after the TTL and the length
    end = at + int.from_bytes(wire[start + 10 : at])
    if end > len(wire):
        return None
    strings = []
    while at < end:
        size = wire[at]
        strings.append(wire[at + 1 : at + 1 + size])
        at += 1 + size
    if signed is not None:
        labels = len(signed.name) - 1  # without the root
        if wire[end : end + 6] != _RRSIG_ANSWER or wire[end + 15 : end + 16] != bytes((labels,)):
            return None
    return b"".join(strings) if strings and at == end else None


def only_record(wire: bytes, question: Question) -> tuple[int, bytes]:
    """The TTL and the data of the only record of a usual TXT answer, which has a `wire`."""
    at = _HEADER.size + len(question.section) + 12  # after the TTL and the length
    size = int.from_bytes(wire[at - 2 : at])
    return int.from_bytes(wire[at - 6 : at - 2]), wire[at : at + size]


def _negative_zone(wire: bytes, start: int, question: Question) -> str | None:
    """The zone of an answer without records, from its only SOA record (RFC 2308 section 2).

    None if it is not above the name, or more follows than an OPT record with no extended RCODE.
    """
    # Usually a pointer to the end of the name.
    end, labels = int.from_bytes(wire[start : start + 2]) - _POINTER - _HEADER.size, 0
    while labels < end and question.section[labels]:
        labels += 1 + question.section[labels]
    if labels == end:
        zone, size = _name_text(question.section[labels : -_TYPE_AND_CLASS.size]), 2
    else:
        try:
            name, size = dns.name.from_wire(wire, start)
        except dns.exception.DNSException:
            return None
        zone = to_text(name) if question.name.is_subdomain(name) else ""
    at = start + size
    rest = wire[at + 10 + int.from_bytes(wire[at + 8 : at + 10]) :]
    is_end = not rest or (rest.startswith(OPT_START) and rest[5:6] == b"\0")
    return zone if zone and wire[at : at + 4] == _SOA_IN and is_end else None


@functools.lru_cache
def _name_text(wire: bytes) -> str:
    return to_text(dns.name.from_wire(wire, 0)[0])


@functools.lru_cache(maxsize=512)
def _read(wire: bytes, question: Question) -> Answer:
    """The answer in a message without its ID: all servers of a zone give the same referral."""
    message = dns.message.from_wire(b"\0\0" + wire, ignore_trailing=True)
    name = question.name
    aliases: list[str] = []
    while len(aliases) < MAX_ALIASES:
        alias = message.get_rrset(message.answer, name, IN, dns.rdatatype.CNAME)
        if alias is None:
            break
        name = alias[0].target
        aliases.append(to_text(name))
    is_txt = question.rdtype == TXT
    records = message.get_rrset(message.answer, name, IN, dns.rdatatype.TXT) if is_txt else None
    # The zones in the authority section that the name is in, by type.
    above: dict[int, str] = {
        rrset.rdtype: to_text(rrset.name)
        for rrset in reversed(message.authority)
        if name.is_subdomain(rrset.name)
    }
    is_authoritative = bool(message.flags & _AUTHORITATIVE)
    rcode: int = message.rcode()
    if rcode == SERVFAIL and len(aliases) == MAX_ALIASES:
        rcode = NOERROR  # BIND has followed them, perhaps in a loop, and gives up
    return Answer(
        rcode, is_authoritative, bool(message.flags & _AVAILABLE),
        tuple(b"".join(record.strings) for record in records or ()),
        alias=aliases[0] if aliases else "", zone=above.get(SOA, ""),
        delegated="" if is_authoritative or message.answer else above.get(NS, ""),
        message=message, is_validated=bool(message.flags & AUTHENTIC),
        is_wildcard=any(
            rrset.rdtype == RRSIG and rrset[0].labels < len(rrset.name) - 1  # without the root
            for rrset in message.answer
        ),
    )  # fmt: skip


def denies(answer: Answer, question: Question) -> bool:
    """Whether the proof that a name has no SOA record denies that it has TXT records or an alias.

    The name's own NSEC or NSEC3 record would list them. Resolvers need no other proof (RFC 8198).
    """
    wire, at, proofs = answer.wire, _HEADER.size + len(question.section), 0
    try:
        # The authority section, unless it has been read as an SOA record alone.
        for _ in range(_HEADER.unpack_from(wire)[4] if wire and not answer.zone else 0):
            owner, size = dns.name.from_wire(wire, at)
            rdtype, _, _, length = _RECORD.unpack_from(wire, at + size)
            start = at + size + _RECORD.size
            at = start + length
            if at > len(wire):
                return False
            if rdtype == NSEC:
                is_own = owner == question.name
                start += dns.name.from_wire(wire, start)[1]
            elif rdtype == NSEC3:
                _, _, iterations, salt_size = _NSEC3_HEAD.unpack_from(wire, start)
                if iterations > _MAX_ITERATIONS or proofs > _MAX_PROOFS:
                    return False
                salt = wire[start + 5 : start + 5 + salt_size]
                digest = question.name.to_digestable()
                for _ in range(iterations + 1):
                    digest = hashlib.sha1(digest + salt, usedforsecurity=False).digest()
                is_own = owner[0].upper() == base64.b32hexencode(digest)
                start += 6 + salt_size + wire[start + 5 + salt_size]
            else:
                continue
            proofs += 1
            types = wire[start:at] + bytes(5)  # the first window, if it is that of types below 256
            if is_own and types[0] == 0 and (types[4] & 0x80 or types[2] & 0x04):  # TXT, CNAME
                return False
    except (dns.exception.DNSException, struct.error, IndexError):
        return False
    return proofs > 0


def rcode_text(rcode: int) -> str:
    """The name of an RCODE, such as SERVFAIL (RFC 1035 section 4.1.1)."""
    return dns.rcode.to_text(dns.rcode.Rcode.make(rcode))


def name_above(name: str) -> str:
    """The name without its first label; "." for a top-level domain."""
    return to_text(dns.name.from_text(name).parent())


def to_text(name: dns.name.Name) -> str:
    """The name in lower case, without trailing dot."""
    return name.to_text(omit_final_dot=True).lower()


def log_query(
    server: Address, transport: str, question: Question, started: float,
    result: Answer | Exception | None,
) -> None:  # fmt: skip
    """Log a query since `started` (time.monotonic), for --verbose. No result: it was truncated."""
    if not _log.isEnabledFor(logging.INFO):
        return
    text = "truncated"
    if isinstance(result, Answer):
        # The RCODE, flags as dig writes them, and the records in short.
        flags = " aa" * result.is_authoritative + " ad" * result.is_validated
        text = f"{rcode_text(result.rcode)}{flags}, {_content(result, question)}"
    elif result is not None:
        why = "" if isinstance(result, TimeoutError) else getattr(result, "strerror", str(result))
        text = f"no answer: {why}" if why else "no answer"
    elapsed = (time.monotonic() - started) * 1000
    _log.info("%s %s: %s: %s, %.0f ms", server, transport, question, text, elapsed)


def _content(answer: Answer, question: Question) -> str:
    if answer.delegated:
        return f"referral to {answer.delegated}"
    texts = answer.texts
    if question.rdtype != TXT:
        texts = [str(data) for data in answer.data(question.rdtype)]
    parts = [f"alias of {answer.alias}"] if answer.alias else []
    if texts:
        records = few([quoted(text) for text in texts])
        parts.append(f"{len(texts)} records: {records}" if len(texts) > 1 else records)
    elif not parts:
        parts.append("no record" + (f", zone {answer.zone}" if answer.zone else ""))
    return ", ".join(parts)
