"""Messages to DNS servers, and what is read from their answers."""

from __future__ import annotations

import logging
import re
import subprocess
import sys

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.ANY.TXT
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.addresses import Address
from dkimctl.dns.messages import (
    Answer,
    TruncatedAnswer,
    decode,
    encode,
    log_query,
    make_question,
    make_txt_question,
    to_text,
)

NAME = "s1._domainkey.example.com"
ASKED = make_txt_question(NAME)
SOA = "ns.example.com. root.example.com. 1 2 3 4 60"

HEADER_SIZE = 12

STRINGS = st.lists(st.binary(max_size=255), min_size=1, max_size=5)
LABELS = st.text("abcXYZ019-_", min_size=1, max_size=20)


def txt(*values: list[bytes], owner: str = NAME) -> dns.rrset.RRset:
    """Records of these strings."""
    records = [
        dns.rdtypes.ANY.TXT.TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings) for strings in values
    ]
    return dns.rrset.from_rdata_list(dns.name.from_text(owner), 60, records)


def record(owner: str, kind: str, text: str) -> dns.rrset.RRset:
    return dns.rrset.from_text(dns.name.from_text(owner), 60, "IN", kind, text)


def response(*answer, authority=(), flags="AA", rcode="NOERROR", asked=ASKED):
    """The response to the question of these records."""
    made = dns.message.make_response(dns.message.from_wire(encode(7, asked, recursion=True)))
    made.flags |= dns.flags.from_text(flags)
    made.set_rcode(dns.rcode.from_text(rcode))
    made.answer, made.authority = list(answer), list(authority)
    return made


def read(*answer, asked=ASKED, **options) -> Answer | None:
    return decode(response(*answer, asked=asked, **options).to_wire(), asked)


@pytest.mark.parametrize("recursion", [False, True])
@pytest.mark.parametrize("edns", [False, True])
@given(labels=st.lists(LABELS, min_size=1, max_size=6), number=st.integers(0, 0xFFFF))
def test_dnspython_reads_a_question_as_meant(labels, number, recursion, edns):
    name = ".".join(labels)
    message = dns.message.from_wire(
        encode(number, make_txt_question(name), recursion=recursion, edns=edns)
    )
    (asked,) = message.question
    assert asked.name == dns.name.from_text(name)
    assert (asked.rdtype, asked.rdclass) == (dns.rdatatype.TXT, dns.rdataclass.IN)
    assert (message.id, message.opcode()) == (number, dns.opcode.QUERY)
    assert message.flags == (dns.flags.RD if recursion else 0)
    assert (message.edns, message.payload) == ((0, 1232) if edns else (-1, 0))
    assert not message.ednsflags


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
def test_name_of_any_bytes_can_be_asked_for(labels):
    name = dns.name.Name([*labels, b""])
    for asked in (
        make_question(name, dns.rdatatype.NS),
        make_question(to_text(name), dns.rdatatype.NS),
    ):
        assert asked.name == name
        (message,) = dns.message.from_wire(encode(1, asked, recursion=False)).question
        assert (message.name, message.rdtype) == (name, dns.rdatatype.NS)


def spelled_out(strings: list[bytes], asked=ASKED, flags: int = 0x8400) -> bytes:
    """The same response, but that the owner's name stands there once more."""
    data = b"".join(bytes([len(string)]) + string for string in strings)
    head = b"\0\7" + flags.to_bytes(2) + bytes([0, 1, 0, 1, 0, 0, 0, 0])
    size = len(data).to_bytes(2)
    return head + asked.section + asked.section + b"\0\0\0\x3c" + size + data


@given(
    strings=st.lists(st.binary(max_size=255), max_size=4),
    flags=st.sampled_from(["AA", "RA", "AA RA", "AD"]),
)
def test_name_compression_changes_nothing(strings, flags):
    number = 0x8000 | dns.flags.from_text(flags)
    plain = spelled_out(strings, flags=number)
    compressed = plain.replace(ASKED.section * 2, ASKED.section + b"\xc0\x0c\0\x10\0\1")
    extra = response(txt(strings), flags=flags) if strings else None
    read_plain, read_compressed = decode(plain, ASKED), decode(compressed, ASKED)
    assert (read_plain and read_plain[:7]) == (read_compressed and read_compressed[:7])
    if extra is not None:
        extra.additional.append(record("ns.example.com", "A", "192.0.2.1"))
        assert decode(extra.to_wire(), ASKED)[:7] == read_compressed[:7]


@given(strings=STRINGS, cut=st.integers(1, 40), grown=st.integers(1, 40))
def test_wrong_length_is_no_answer(strings, cut, grown):
    wire = spelled_out(strings).replace(ASKED.section * 2, ASKED.section + b"\xc0\x0c\0\x10\0\1")
    size = sum(1 + len(string) for string in strings)
    at = len(wire) - size - 2
    assert decode(wire[: -min(cut, size)], ASKED) is None
    longer = wire[:at] + (size + grown).to_bytes(2) + wire[at + 2 :]
    assert decode(longer, ASKED) is None
    split = wire[:at] + (size + grown).to_bytes(2) + wire[at + 2 :] + b"\xff" * grown
    assert decode(split, ASKED) is None


@pytest.mark.parametrize("rcode", ["NOERROR", "NXDOMAIN"])
@pytest.mark.parametrize("edns", [False, True])
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("zone", ["com", "Example.com", "_domainkey.example.com", NAME])
def test_usual_negative_answer_is_read_without_dnspython(zone, is_compressed, edns, rcode):
    made = response(authority=[record(zone, "SOA", SOA)], rcode=rcode)
    made.use_edns(0 if edns else False)
    wire = made.to_wire()
    if not is_compressed:  # as named writes it
        at = HEADER_SIZE + len(ASKED.section)
        wire = wire[:at] + dns.name.from_text(zone).to_wire() + wire[at + 2 :]
    answer = decode(wire, ASKED)
    assert (answer.zone, answer.rcode) == (zone.lower(), dns.rcode.from_text(rcode))
    assert answer.message is None


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.authority.append(record("example.com", "NS", "ns.example.com.")),
        lambda made: made.additional.append(record("example.com", "A", "192.0.2.1")),
        lambda made: made.set_rcode(dns.rcode.SERVFAIL),
        lambda made: made.set_rcode(dns.rcode.BADVERS),
        lambda made: made.authority.append(record(r"a\.b.example.com", "SOA", SOA)),
    ],
)
def test_other_negative_answers_mean_what_dnspython_reads(change):
    made = response(authority=[record("example.com", "SOA", SOA)], rcode="NXDOMAIN")
    made.use_edns(0)
    change(made)
    answer = decode(made.to_wire(), ASKED)
    assert (answer.rcode, answer.zone) == (made.rcode(), "example.com")


def test_alias_with_its_target_in_the_answer_has_its_value():
    answer = read(
        record(NAME, "CNAME", "one.example.net."),
        record("one.example.net", "CNAME", "Two.example.net."),
        txt([b"v=", b"DKIM1"], owner="two.example.net"),
    )
    assert (answer.alias, answer.values) == ("one.example.net", (b"v=DKIM1",))


@pytest.mark.parametrize("length", range(1, 10))
def test_loop_of_aliases_is_read_as_an_alias(length):
    names = [NAME, *(f"n{number}.example.com" for number in range(1, length))]
    loop = [
        record(name, "CNAME", f"{target}.")
        for name, target in zip(names, [*names[1:], NAME], strict=True)
    ]
    answer = read(*loop)
    assert answer.values == ()
    assert answer.alias


def test_referral_names_the_delegated_zone():
    answer = read(authority=[record("_domainkey.Example.com", "NS", "ns.example.net.")], flags="RD")
    assert (answer.delegated, answer.is_authoritative) == ("_domainkey.example.com", False)


@pytest.mark.parametrize("answer", [(), (txt([b"x"]),)])
def test_truncated_answer_raises(answer):
    with pytest.raises(TruncatedAnswer):
        read(*answer, flags="AA TC")


@pytest.mark.parametrize(
    "asked", [make_txt_question(f"s2.{NAME}"), make_question(NAME, dns.rdatatype.SPF)]
)
def test_answer_to_another_question_is_none(asked):
    assert decode(response(asked=asked).to_wire(), ASKED) is None
    wire = response(txt([b"x"])).to_wire().replace(b"example", b"eXaMPLE")
    assert decode(wire, ASKED).values == (b"x",)


@pytest.mark.parametrize(("rcode", "is_answer"), [(0, False), (1, True), (2, True), (5, True)])
def test_only_a_refusal_may_leave_the_question_out(rcode, is_answer):
    wire = b"\0\7" + (0x8000 | rcode).to_bytes(2) + bytes(8)
    answer = decode(wire, ASKED)
    assert (answer is not None) == is_answer
    assert not is_answer or answer.rcode == rcode


@pytest.mark.parametrize(("kind", "data"), [("A", "7f000001"), ("AAAA", "00" * 16)])
def test_address_of_class_any_does_not_spoil_later_ones(kind, data):
    """In a process that has read none before: dnspython keeps what it has found of each type."""
    asked = make_question("example.com", int(dns.rdatatype.from_text(kind)))
    # First, for the same reason.
    usual = record("example.com", kind, "127.0.0.1" if kind == "A" else "::")
    strange = dns.rrset.from_text(
        "example.com.", 60, "CLASS255", kind, rf"\# {len(data) // 2} {data}"
    )
    wires = [response(rrset, asked=asked).to_wire() for rrset in (strange, usual)]
    program = (
        "from dkimctl.dns.messages import Question, decode\n"
        f"found = [decode(wire, Question{tuple(asked)}) for wire in {wires}]\n"
        "print(found[1].message.answer[0][0].address)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{usual[0].address}\n", done.stderr


@pytest.fixture
def logged(caplog):
    """The lines so far, without the milliseconds."""
    caplog.set_level(logging.INFO, "dkimctl.dns")
    return lambda: [re.sub(r", \d+ ms$", "", record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(3, True, False, zone="example.com"), "NXDOMAIN aa, no record, zone example.com"),
        (Answer(5, False, False), "REFUSED, no record"),
        (Answer(0, False, False, delegated="a.example"), "NOERROR, referral to a.example"),
        (
            Answer(0, True, False, (b"x",), alias="k.example", is_validated=True),
            'NOERROR aa ad, alias of k.example, "x"',
        ),
        (Answer(0, True, False, (b"a", b"b")), 'NOERROR aa, 2 records: "a", "b"'),
        (Answer(0, True, False, (b"\x1b[31m\xff",)), r'NOERROR aa, "\x1b[31m\udcff"'),
        (Answer(0, True, False, (b"p" * 400,)), f'NOERROR aa, "{"p" * 60}…"'),
        (None, "truncated"),
    ],
)
def test_what_came_back_is_told_in_short(logged, answer, text):
    log_query(Address("2001:db8::1"), "TCP", ASKED, 0.0, answer)
    assert logged() == [f"2001:db8::1 TCP: TXT s1._domainkey.example.com: {text}"]
