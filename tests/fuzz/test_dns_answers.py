"""Responses of DNS servers: any bytes lead to a verdict, or are ignored."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence

import dns.exception
import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.dns.check import Checker
from dkimctl.dns.messages import (
    TXT,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    make_question,
    make_txt_question,
    rcode_text,
)
from dkimctl.dns.nameserver import NoAnswer, Server
from dkimctl.dns.queries import Source
from dkimctl.dns.verdicts import Verdict
from dkimctl.dns.zones import ZoneServers
from dkimctl.formats.renderer import CheckFormat
from dkimctl.models import DnsRecord, Registration
from rendering import render_checks
from terminals import is_harmless

NAME = "s1._domainkey.example.com"
ASKED = make_txt_question(NAME)
KEY = (
    "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDJ6Vm7BIJX8b1U4EAiurKbU5fU7KsU1j0O/qO1"
    "H5PB6v6QFmlfx6Yq2OgzO9jR74DBZ8DjmoZty+AlKi9Dgsp+dUAyj5U2MhwtSPCSY58q4IK1aDdHPS/BpP+1W4MHSHtOVnu"
    "e9EOzGLJGw6zJI0pMeO72e7EXecGjcoMxy9VllwIDAQAB"
)
REGISTERED = Registration(
    "example.com", "s1", 1024, "2027-07-01T00:00+09:00", 0, True, DnsRecord(NAME, "TXT", KEY)
)
HEADER = struct.Struct("!6H")
RECORD = struct.Struct("!HHIH")
TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "TXT": 16, "AAAA": 28, "DNAME": 39, "OPT": 41}
IN = 1


def wire_of(name: str) -> bytes:
    return dns.name.from_text(name).to_wire()


def strings(text: bytes) -> bytes:
    """The data of a TXT record."""
    parts = [text[at : at + 255] for at in range(0, len(text), 255)]
    return b"".join(bytes([len(part)]) + part for part in parts)


# Data by type, as servers send it; a pointer leads to the name that was asked for.
DATA = {
    "TXT": (strings(KEY.encode()), strings(b"v=DKIM1; p="), strings(KEY.encode()[:200]), b"\1\xff",
            strings(b'"v=DKIM1\\;"'), b"\0", strings(b"\x1b[2J\n"), strings(b"v=spf1 -all") * 20),
    "CNAME": (wire_of("s1.hosted.example."), b"\xc0\x0c", wire_of(f"{NAME}."), b"\0",
              wire_of("\\000\\027[2J.example."), b"\1a\xc0\x0c"),
    "NS": (wire_of("ns.example.com."), wire_of("ns2.example.net."), b"\xc0\x0c", b"\0"),
    "A": (b"\x7f\0\0\1", b"\xc0\0\2\1"),
    "AAAA": (bytes(15) + b"\1", bytes(16)),
    "SOA": (wire_of("ns.example.com.") * 2 + struct.pack("!5I", 1, 2, 3, 4, 60),),
    "DNAME": (wire_of("example.net."),),
    "OPT": (b"", b"\0\x0a\0\x08abcdefgh", b"\0\x08\0\x04\0\1\x20\0", b"\0\x0f\0\2\0\7"),
}  # fmt: skip
OWNERS = (
    wire_of(f"{NAME}."), wire_of("com."), wire_of("Example.COM."), wire_of("s1.hosted.example."),
    wire_of("ns.example.com."), wire_of("_domainkey.example.com."), b"\0", b"\xc0\x0f", b"\xc0\x1a",
    b"\xc0\xff", b"\xc0", b"\x3f", b"\x40", b"\xff\xff",
)  # fmt: skip


def mostly(usual: object, *others: object) -> st.SearchStrategy:
    """Mostly the first: a message with errors in every part would be ignored as a whole."""
    return st.sampled_from((*[usual] * 7 * len(others), *others))


@st.composite
def records(draw: st.DrawFn, usual: Sequence[str]) -> bytes:
    """A record, now and then with a wrong class, data or length."""
    kind = draw(st.sampled_from((*usual * 4, *DATA)))
    data = draw(st.integers(0, 7).flatmap(
        lambda turn: st.sampled_from(DATA[kind]) if turn else st.binary(max_size=30)
    ))  # fmt: skip
    owner = draw(mostly(b"\0" if kind == "OPT" else b"\xc0\x0c", *OWNERS))
    number = draw(mostly(TYPES[kind], 0, 46, 64, 255, 0xFFFF))
    group = draw(mostly(IN, 3, 4, 254, 255, 1232, 0xFFFF))
    ttl = draw(mostly(0, 60, 0x01000000, 0xFFFFFFFF))  # of OPT: an extended code
    size = draw(mostly(len(data), 0, 1, len(data) + 1, 0xFFFF))
    return owner + RECORD.pack(number, group, ttl, size) + data


USUAL_FLAGS = st.sampled_from((0x8400, 0x8180, 0x8580, 0x8000, 0x8403, 0x8402, 0x8600))
FLAGS = USUAL_FLAGS | USUAL_FLAGS | USUAL_FLAGS | st.integers(0x8000, 0xFFFF)


@st.composite
def answers(draw: st.DrawFn, asked: Question, usual: Sequence[str]) -> bytes:
    """A message that answers `asked`, with a few wrong bytes."""
    parts = ((usual, 3), (("SOA", "NS"), 2), (("OPT", "A"), 1))
    sections = [draw(st.lists(records(kinds), max_size=size)) for kinds, size in parts]
    counts = [len(section) for section in sections]
    if draw(st.integers(0, 9)) == 0:
        counts[draw(st.integers(0, 2))] = draw(st.sampled_from((0, 1, 2, 0xFFFF)))
    repeated = draw(st.sampled_from((asked.section,) * 9 + (b"", asked.section.swapcase())))
    head = HEADER.pack(7, draw(FLAGS), int(repeated != b""), *counts)
    message = bytearray(head + repeated + b"".join(b"".join(section) for section in sections))
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 0, 1, 2, 4)))):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    if draw(st.integers(0, 9)) == 0:
        del message[draw(st.integers(0, len(message) - 1)) :]
    return bytes(message) + draw(st.just(b"") | st.binary(max_size=20))


ANSWERS = answers(ASKED, ("TXT", "TXT", "CNAME"))
MESSAGES = ANSWERS | ANSWERS | ANSWERS | st.binary(max_size=300)


def chained(links: int, names: int) -> bytes:
    """An answer with many names, each of which goes through many pointers."""
    start = HEADER.size + len(ASKED.section) + 2 + RECORD.size
    places = [HEADER.size, *range(start, start + 2 * links, 2)]
    chain = b"".join((0xC000 | place).to_bytes(2) for place in places[:-1])
    first = b"\xc0\x0c" + RECORD.pack(0xFF00, IN, 0, len(chain)) + chain
    other = (0xC000 | places[-1]).to_bytes(2) + RECORD.pack(0xFF01, IN, 0, 0)
    return HEADER.pack(7, 0x8400, 1, 1 + names, 0, 0) + ASKED.section + first + other * names


def read(wire: bytes, asked: Question = ASKED) -> Answer | None:
    """The decoded message; None also if it is truncated."""
    try:
        return decode(wire, asked)
    except TruncatedAnswer:
        return None


def by_others(wire: bytes) -> dns.message.Message | None:
    """The message as dnspython reads it."""
    try:
        return dns.message.from_wire(wire, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError, NotImplementedError):
        return None


@given(wire=MESSAGES)
@example(wire=chained(links=4000, names=4000))
@example(wire=HEADER.pack(7, 0x8400, 1, 0xFFFF, 0, 0) + ASKED.section + b"\xc0\x0c" * 30_000)
@example(wire=HEADER.pack(7, 0x8400, 1, 5000, 0, 0) + ASKED.section
         + (b"\xc0\x0c" + RECORD.pack(16, IN, 60, 1) + b"\0") * 5000)  # fmt: skip
def test_any_message_is_decoded_or_ignored(wire):
    answer = read(wire)
    if answer is None:
        return
    assert wire[2] & 0x80
    assert all(isinstance(value, bytes) for value in answer.values)
    assert is_harmless(
        f"{answer.alias} {answer.zone} {answer.delegated} {rcode_text(answer.rcode)}"
    )
    for name in filter(None, (answer.alias, answer.zone, answer.delegated)):
        assert make_question(name, TXT).section  # it can be asked for


@given(wire=MESSAGES)
def test_dnspython_decodes_the_same(wire):
    ours, theirs = read(wire), by_others(wire)
    if ours is None or theirs is None or theirs.opcode() != 0 or len(theirs.question) != 1:
        return
    assert theirs.question[0].name == ASKED.name
    # The fast decoder of usual answers ignores the OPT record, which can extend the rcode.
    assert ours.rcode == (theirs.rcode() if ours.message else theirs.rcode() & 0xF)
    name = ASKED.name
    for _ in range(8):
        aliases = [data.target for data in data_of(theirs, name, dns.rdatatype.CNAME)]
        if not aliases:
            break
        name = aliases[0]
    else:
        return  # a loop
    values = [b"".join(data.strings) for data in data_of(theirs, name, dns.rdatatype.TXT)]
    assert sorted(ours.values) == sorted(values)
    soa = {rrset.name for rrset in theirs.authority if rrset.rdtype == dns.rdatatype.SOA}
    assert not ours.zone or dns.name.from_text(ours.zone) in soa


def data_of(message: dns.message.Message, name: dns.name.Name, kind: int) -> list:
    """The fields of an answer that dnspython can be compared with."""
    return [
        data
        for rrset in message.answer
        if (rrset.name, rrset.rdtype, rrset.rdclass) == (name, kind, dns.rdataclass.IN)
        for data in rrset
    ]


class AnyServer:
    """Stands for every server: `respond` makes the bytes that answer a question."""

    def __init__(self, respond: Callable[[Question], bytes]) -> None:
        self._respond = respond

    async def ask(self, question: Question) -> Answer:
        answer = read(self._respond(question), question)
        if answer is None:
            raise NoAnswer("its answer cannot be read")
        return answer

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Nothing is prefetched."""

    def reset(self) -> None:
        """Nothing is held against it."""


def any_source(server: AnyServer, *, is_given: bool) -> tuple[Source, list[str]]:
    """Finds servers from the responses of `server`, and keeps their addresses; each is that one."""
    made: list[str] = []

    def make(address: str) -> AnyServer:
        Server(address)  # accepts only an address
        made.append(address)
        return server

    if is_given:
        return Source(given={"any server": server}), made
    return Source(ZoneServers(server, make)), made


USUAL = {1: ("A",), 2: ("NS",), 6: ("SOA",), 16: ("TXT", "CNAME", "NS"), 28: ("AAAA",)}


def sound_answer(asked: Question) -> bytes:
    """The response of a sound server, whose zone is example.com or hosted.example."""
    kind = USUAL[asked.rdtype][0]
    owner = b"\xc0\x0c"
    if kind == "SOA" and asked.name.is_subdomain(dns.name.from_text("example.com")):
        owner = wire_of("example.com.")
    data = DATA[kind][0]
    record = owner + RECORD.pack(asked.rdtype, IN, 60, len(data)) + data
    return HEADER.pack(7, 0x8580, 1, 1, 0, 0) + asked.section + record


TURNS = st.frozensets(st.integers(0, 12), max_size=3)


def responder(data: st.DataObject, wrong: frozenset[int]) -> Callable[[Question], bytes]:
    """A sound server, except for some turns at which it answers anything."""
    turns = itertools.count()

    def respond(asked: Question) -> bytes:
        if next(turns) in wrong:
            return data.draw(answers(asked, USUAL[asked.rdtype]))
        return sound_answer(asked)

    return respond


@given(data=st.data(), wrong=TURNS, is_given=st.booleans(), expect_absent=st.booleans())
def test_every_response_leads_to_a_verdict(data, wrong, is_given, expect_absent):
    source, made = any_source(AnyServer(responder(data, wrong)), is_given=is_given)
    (check,) = Checker(source, expect_absent=expect_absent).check([REGISTERED])
    assert all(isinstance(address, str) for address in made)
    assert check.finding.verdict in Verdict
    for fmt in CheckFormat:
        text = render_checks(fmt, [check])
        text.encode()
        assert all(map(is_harmless, text.split("\n")))


def test_sound_responses_are_understood():
    for is_given in (False, True):
        source, made = any_source(AnyServer(sound_answer), is_given=is_given)
        (check,) = Checker(source).check([REGISTERED])
        assert check.finding.verdict is Verdict.PUBLISHED
        assert bool(made) is not is_given
    assert len(encode(1, ASKED, recursion=False)) < 512
