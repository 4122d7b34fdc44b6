"""What a new name would take from a wildcard, by servers that answer in their own ways."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rrset
import pytest

from dkimctl.dns.messages import A, decode
from dkimctl.dns.wildcards import Records, find_shadowed, questions_about, records_in

SHOP = "shop.example.com"
NAME = f"s1._domainkey.{SHOP}"
WILD = "192.0.2.1"
ADD_FIRST = (f"shop.example.com. 60 IN A {WILD}", f"*.shop.example.com. 60 IN A {WILD}")


def by_name(name: str) -> str:
    return f"192.0.2.{len(name)}"


CASES = {
    "usual": (lambda name: WILD, ADD_FIRST),
    "nothing": (lambda name: None, "whole"),
    "silent": (lambda name: "silent", None),
    "fails below the host": (lambda name: "silent" if ".*." in name else WILD, None),
    "fails at the host": (lambda name: "silent" if name == SHOP else WILD, None),
    "answers nothing at the host": (lambda name: None if name == SHOP else WILD, "whole"),
    "own copies of it": (lambda name: None if ".*." in name else WILD, "whole"),
    # As PowerDNS does by Lua records; below the host stands what a sibling of it has.
    "data made from the name": (
        by_name,
        ("shop.example.com. 60 IN A 192.0.2.16", "*.shop.example.com. 60 IN A 192.0.2.20"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_to_add_first(case):
    data_at, expected = CASES[case]

    def look(zones):
        found = {name: data_at(name) for name in zones}
        return {
            name: [Records("A", 60, (data,))] if data else []
            for name, data in found.items()
            if data != "silent"
        }

    # At the zone itself, nothing is lost; nor, where an alias leads, at the name of the record.
    names = (NAME, "key.shop.example.com", "s1._domainkey.example.com", "key.example.com")
    shadowed = find_shadowed(dict.fromkeys(names, "example.com"), look)
    assert shadowed == ({} if expected == "whole" else dict.fromkeys(names[:2], expected))


def test_names_of_one_zone_share_their_questions():
    asked = []

    def look(zones):
        asked.extend(zones)
        return {name: [] for name in zones}

    names = [f"s{number % 3}._domainkey.d{number}.example.com" for number in range(1000)]
    assert find_shadowed(dict.fromkeys(names, "example.com"), look) == {}
    assert len(asked) == 1


def test_a_host_with_records_of_its_own_is_one_question_beside_a_wildcard():
    asked = []

    def look(zones):
        asked.extend(zones)
        return {name: [] if ".*." in name else [Records("A", 60, (WILD,))] for name in zones}

    names = [f"s1._domainkey.d{number}.example.com" for number in range(1000)]
    assert find_shadowed(dict.fromkeys(names, "example.com"), look) == {}
    assert len(asked) == 1 + len(names)


@pytest.mark.parametrize(
    ("rcodes", "expected"),
    [
        (["NOERROR"] * 5, [Records("A", 60, (WILD,))]),
        (["NOERROR", *["SERVFAIL"] * 4], [Records("A", 60, (WILD,))]),
        (["REFUSED", "NXDOMAIN", *["NOTIMP"] * 3], []),
        (["SERVFAIL"] * 5, None),
    ],
)
def test_a_server_that_fails_at_some_types_has_nothing_of_them(rcodes, expected):
    answers = {}
    for question, rcode in zip(questions_about(SHOP), rcodes, strict=True):
        reply = dns.message.make_response(dns.message.make_query(SHOP, question.rdtype))
        reply.set_rcode(dns.rcode.from_text(rcode))
        if question.rdtype == A and rcode == "NOERROR":
            reply.answer.append(dns.rrset.from_text(f"{SHOP}.", 60, "IN", "A", WILD))
        answers[question] = decode(reply.to_wire(), question)
    assert records_in(answers) == expected
