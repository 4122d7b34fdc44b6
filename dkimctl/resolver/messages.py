"""DNS messages: a question, and what the answer to it says (RFC 1035 section 4)."""

# dnspython takes 35 ms to import: most answers are read without it.
from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import dns.message
    import dns.name

A, NS, SOA, TXT, AAAA = 1, 2, 6, 16, 28  # types of records (RFC 1035 section 3.2.2, RFC 3596)
NOERROR, FORMERR, NXDOMAIN, NOTIMP = 0, 1, 3, 4  # of answers (RFC 1035 section 4.1.1)
USEFUL = frozenset((NOERROR, NXDOMAIN))
NEED_CARE = frozenset((FORMERR, NOTIMP))  # mostly of servers older than RFC 6891
_OPT_TYPE = 41
_IN = 1
_PAYLOAD = 1232  # bytes; larger answers over UDP come in fragments, which are often lost
_HEADER = struct.Struct("!6H")
_KIND_AND_CLASS = struct.Struct("!2H")
_TXT_IN = b"\0\0\x10\0\x01"  # the end of the name, the type and the class
# The header's flags.
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _DESIRED, _AVAILABLE = 0x8000, 0x0400, 0x0200, 0x0100, 0x80
_RCODE = 0x000F
_OPT = struct.pack("!BHHIH", 0, _OPT_TYPE, _PAYLOAD, 0, 0)  # RFC 6891 section 6.1.2
_TXT_HERE = b"\xc0\x0c\x00\x10\x00\x01"  # of the question's own name, TXT, IN
_CHAIN = 8  # aliases of aliases


class Question(NamedTuple):
    """A name and type to ask for: as they stand in a message, and the type once more."""

    section: bytes
    kind: int

    @property
    def name(self) -> dns.name.Name:
        import dns.name

        return dns.name.from_wire(self.section, 0)[0]


class Answer(NamedTuple):
    """What a server says of a question for TXT records; names are without trailing dot.

    `values` holds each record's strings, joined (RFC 6376 section 3.6.2.2), at the name itself or
    where CNAME records lead in the end. `alias` is where the first of them leads, or "". `zone` is
    the one that has no such record, where the answer tells it; `delegated` the one whose servers
    are to be asked instead. `message` is the whole, where it had to be read.
    """

    rcode: int
    is_authoritative: bool
    is_recursive: bool
    values: tuple[bytes, ...] = ()
    alias: str = ""
    zone: str = ""
    delegated: str = ""
    message: dns.message.Message | None = None


class TruncatedAnswer(Exception):
    """The answer did not fit into a datagram."""


def question(name: dns.name.Name | str, kind: int) -> Question:
    """The question for records of a name, which may lack its trailing dot."""
    if isinstance(name, str):
        import dns.name

        name = dns.name.from_text(name)
    return Question(name.to_digestable() + _KIND_AND_CLASS.pack(kind, _IN), kind)


def txt_question(fqdn: str) -> Question:
    """The question for the TXT records of a name of plain labels (dkim.is_name)."""
    labels = [bytes((len(label),)) + label for label in fqdn.lower().encode("ascii").split(b".")]
    return Question(b"".join(labels) + _TXT_IN, TXT)


def random_number() -> int:
    """One to know the answer by, which nobody else can tell."""
    return int.from_bytes(os.urandom(2))


def encode(number: int, asked: Question, *, recursion: bool, edns: bool = True) -> bytes:
    """The message that asks it, under a number of 16 bits."""
    flags = _DESIRED if recursion else 0
    head = _HEADER.pack(number, flags, 1, 0, 0, 1 if edns else 0)
    return head + asked.section + (_OPT if edns else b"")


def decode(wire: bytes, asked: Question) -> Answer | None:
    """What a message says; None where it is no answer to this question.

    Raises TruncatedAnswer where the rest is to be asked for over TCP.
    """
    if len(wire) < _HEADER.size:
        return None
    _, flags, questions, answers, _, _ = _HEADER.unpack_from(wire)
    section = wire[_HEADER.size : _HEADER.size + len(asked.section)]
    # Some servers that refuse leave the question out.
    is_ours = section.lower() == asked.section.lower() if questions else flags & _RCODE
    if not flags & _RESPONSE or not is_ours:
        return None
    if flags & _TRUNCATED:
        raise TruncatedAnswer
    if answers == 1 and asked.kind == TXT and not flags & _RCODE:
        value = _only_value(wire, _HEADER.size + len(section))
        if value is not None:
            return Answer(0, bool(flags & _AUTHORITATIVE), bool(flags & _AVAILABLE), (value,))
    import dns.exception

    try:
        return _read(_parsed(wire), asked)
    except (dns.exception.DNSException, ValueError, NotImplementedError):
        return None


def _only_value(wire: bytes, start: int) -> bytes | None:
    """The value of the one record that nearly all answers hold; None for any other.

    To read such an answer with dnspython takes ten times as long as all the rest.
    """
    if wire[start : start + len(_TXT_HERE)] != _TXT_HERE:
        return None
    at = start + 12  # beyond the time to live and the length
    end = at + int.from_bytes(wire[start + 10 : at])
    if end > len(wire):
        return None
    strings = []
    while at < end:
        size = wire[at]
        strings.append(wire[at + 1 : at + 1 + size])
        at += 1 + size
    return b"".join(strings) if strings and at == end else None


def _parsed(wire: bytes) -> dns.message.Message:
    """The message as dnspython reads it. Raises DNSException, ValueError, NotImplementedError."""
    import dns.message
    import dns.rdata

    # A type that it meets in the class ANY before it knows it in another has no meaning to it
    # from then on, and one such record would make all addresses to come unreadable.
    for kind in (A, AAAA):
        dns.rdata.get_rdata_class(_IN, kind)  # type: ignore[no-untyped-call]
    return dns.message.from_wire(wire, ignore_trailing=True)


def _read(message: dns.message.Message, asked: Question) -> Answer:
    from dns.rdataclass import IN
    from dns.rdatatype import CNAME
    from dns.rdatatype import TXT as TXT_TYPE

    name = asked.name
    aliases: list[str] = []
    values: list[bytes] = []
    while len(aliases) < _CHAIN:
        alias = message.get_rrset(message.answer, name, IN, CNAME)
        if alias is None:
            break
        name = alias[0].target
        aliases.append(to_text(name))
    if asked.kind == TXT:
        found = message.get_rrset(message.answer, name, IN, TXT_TYPE)
        values = [b"".join(record.strings) for record in found or ()]
    is_authoritative = bool(message.flags & _AUTHORITATIVE)
    return Answer(
        message.rcode(),
        is_authoritative,
        bool(message.flags & _AVAILABLE),
        tuple(values),
        aliases[0] if aliases else "",
        _owner(message, SOA, name),
        "" if is_authoritative or message.answer else _owner(message, NS, name),
        message,
    )


def _owner(message: dns.message.Message, kind: int, name: dns.name.Name) -> str:
    """Of the record of this type in the authority section, if `name` is at or below it."""
    owners = (rrset.name for rrset in message.authority if rrset.rdtype == kind)
    return next((to_text(owner) for owner in owners if name.is_subdomain(owner)), "")


def rcode_name(answer: Answer) -> str:
    """Such as SERVFAIL (RFC 1035 section 4.1.1)."""
    import dns.rcode

    return dns.rcode.to_text(dns.rcode.Rcode.make(answer.rcode))


def to_text(name: dns.name.Name) -> str:
    """The name in lower case, without trailing dot."""
    return name.to_text(omit_final_dot=True).lower()
