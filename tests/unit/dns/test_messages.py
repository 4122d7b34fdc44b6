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
from dns.dnssec import nsec3_hash
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.addresses import Address
from dkimctl.dns.messages import (
    DNSSEC_OK,
    Answer,
    decode,
    denies,
    encode,
    log_query,
    make_question,
    make_txt_question,
    soa_at,
)

NAME = "s1._domainkey.example.com"
ASKED = make_txt_question(NAME)
SOA = "ns.example.com. root.example.com. 1 2 3 4 60"

HEADER_SIZE = 12

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


def test_zone_that_the_name_is_not_in_is_none_of_it():
    assert read(authority=[record("other.test", "SOA", SOA)]).zone == ""


def test_referral_names_the_delegated_zone():
    answer = read(authority=[record("_domainkey.Example.com", "NS", "ns.example.net.")], flags="RD")
    assert (answer.delegated, answer.is_authoritative) == ("_domainkey.example.com", False)


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
        (Answer(0, False, False, delegated="a.example"), "NOERROR, referral to a.example"),
        (
            Answer(0, True, False, (b"x",), alias="k.example", is_validated=True),
            'NOERROR aa ad, alias of k.example, "x"',
        ),
        (Answer(0, True, False, (b"\x1b[31m\xff",)), r'NOERROR aa, "\x1b[31m\udcff"'),
        (Answer(0, True, False, (b"a", b"p" * 400)), f'NOERROR aa, 2 records: "a", "{"p" * 60}…"'),
        (None, "truncated"),
    ],
)
def test_what_came_back_is_told_in_short(logged, answer, text):
    log_query(Address("2001:db8::1"), "TCP", ASKED, 0.0, answer)
    assert logged() == [f"2001:db8::1 TCP: TXT s1._domainkey.example.com: {text}"]


NSEC3_HASH = nsec3_hash(NAME, "aabb", 3, "SHA1")
BEFORE, HASHED = "a.example.com.", f"{NSEC3_HASH}.example.com."


@pytest.mark.parametrize(
    ("expected", "records"),
    [(False, []), (False, [(NAME, "NSEC z.example.com. TXT RRSIG NSEC")]),
     (False, [(BEFORE, "NSEC z.example.com. A"), (NAME, "NSEC z.example.com. CNAME NSEC")]),
     (True, [(BEFORE, "NSEC z.example.com. TXT RRSIG NSEC")]),
     (True, [(NAME, "NSEC z.example.com. A RRSIG NSEC")]),
     (False, [(HASHED, f"NSEC3 1 0 3 aabb {NSEC3_HASH} TXT RRSIG")]),
     (True, [(HASHED, f"NSEC3 1 0 3 aabb {NSEC3_HASH} A RRSIG")]),
     (True, [(HASHED, f"NSEC3 1 0 2 aabb {NSEC3_HASH} TXT RRSIG")]),
     (False, [(HASHED, f"NSEC3 1 0 151 aabb {NSEC3_HASH} TXT RRSIG")])],
)  # fmt: skip
def test_nsec_records_deny_what_they_do_not_list(expected, records):
    asked = soa_at(ASKED._replace(flags=DNSSEC_OK))
    authority = [record("example.com.", "SOA", SOA)]
    authority += [record(owner, *data.split(" ", 1)) for owner, data in records]
    wire = response(authority=authority, asked=asked).to_wire()
    answer = decode(wire, asked)
    assert denies(answer, asked) is expected
    for size in range(len(wire)):  # a message that is cut short is no error
        assert denies(answer._replace(wire=wire[:size]), asked) in (False, expected)


def test_a_message_that_is_no_answer_to_a_query_is_not_read():
    """As an update, a record without data may be of class ANY (RFC 2136, section 2.5.2)."""
    asked = soa_at(ASKED)
    head = bytes((0, 1, 0x84 | dns.opcode.UPDATE << 3, 0, 0, 1, 0, 1, 0, 0, 0, 0))
    signature = b"\xc0\x0c" + bytes((0, 46, 0, 255, 0, 0, 0, 0, 0, 0))
    assert decode(head + asked.section + signature, asked) is None
