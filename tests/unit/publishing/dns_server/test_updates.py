from __future__ import annotations

import dns.message
import dns.name
import dns.update
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.publishing.changes import NameState
from dkimctl.publishing.dns_server.updates import (
    batches,
    make_part,
    make_probe,
    make_update,
    room,
    txt_wire,
)
from update_servers import change

NAME = "s1._domainkey.mail.example.com"
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=1000)


def wire_of(*changes) -> bytes:
    return make_update("example.com", [make_part(one, "example.com") for one in changes])


def by_dnspython(wire: bytes) -> dns.update.UpdateMessage:
    made = dns.update.UpdateMessage("example.com")
    made.id = int.from_bytes(wire[:2])
    return made


def records(section) -> list[tuple]:
    return [
        (rrset.name, rrset.rdtype, rrset.rdclass, rrset.deleting, rrset.ttl, list(rrset))
        for rrset in section
    ]


def assert_same(wire: bytes, expected: dns.update.UpdateMessage) -> None:
    read = dns.message.from_wire(wire)
    made = dns.message.from_wire(expected.to_wire())
    assert read.zone == made.zone
    assert records(read.prerequisite) == records(made.prerequisite)
    assert records(read.update) == records(made.update)


VALUE = "v=DKIM1; k=rsa; p=" + 300 * "A"


def test_what_is_created_must_not_exist_nor_be_an_alias():
    wire = wire_of(change(NAME, VALUE))
    expected = by_dnspython(wire)
    expected.absent(f"{NAME}.", "TXT")
    expected.absent(f"{NAME}.", "CNAME")
    expected.add(f"{NAME}.", 3600, "TXT", f'"{VALUE[:255]}" "{VALUE[255:]}"')
    assert_same(wire, expected)


def test_what_is_replaced_must_be_what_was_read():
    wire = wire_of(change(NAME, VALUE, NameState(("one", "two"), 60)))
    expected = by_dnspython(wire)
    expected.present(f"{NAME}.", "TXT", "one")
    expected.present(f"{NAME}.", "TXT", "two")
    expected.delete(f"{NAME}.", "TXT")
    expected.add(f"{NAME}.", 3600, "TXT", f'"{VALUE[:255]}" "{VALUE[255:]}"')
    assert_same(wire, expected)


def test_what_is_removed_must_be_what_was_read_in_its_own_strings():
    before = NameState(("onetwo",), 60, wire=(b"\3one\3two",))
    wire = wire_of(change(NAME, None, before))
    expected = by_dnspython(wire)
    expected.present(f"{NAME}.", "TXT", '"one" "two"')
    expected.delete(f"{NAME}.", "TXT")
    assert_same(wire, expected)


def test_a_probe_deletes_one_value():
    wire = make_probe("example.com", NAME, "probe")
    expected = by_dnspython(wire)
    expected.delete(f"{NAME}.", "TXT", "probe")
    assert_same(wire, expected)


@given(VALUES)
def test_the_strings_of_a_value_are_its_bytes(value):
    wire, strings = txt_wire(value), []
    while wire:
        strings.append(wire[1 : 1 + wire[0]])
        wire = wire[1 + wire[0] :]
    assert b"".join(strings).decode() == value


@given(st.lists(st.integers(min_value=1, max_value=4096), min_size=1, max_size=60))
def test_no_message_is_too_large_and_none_is_lost(sizes):
    changes = [
        change(f"s{number}._domainkey.example.com", "x" * size) for number, size in enumerate(sizes)
    ]
    parts = [make_part(one, "example.com") for one in changes]
    most = room("example.com", 100)
    groups = list(batches(parts, most))
    assert [part for group in groups for part in group] == parts
    assert all(len(make_update("example.com", group)) + 100 <= 0xFFFF for group in groups)
    assert len(groups) <= sum(sizes) // 50_000 + 1


@pytest.mark.parametrize("zone", ["example.com", "mail.example.com", "example.net"])
def test_names_are_read_as_they_are_in_and_outside_the_zone(zone):
    wire = make_update(zone, [make_part(change(NAME, "x"), zone)])
    read = dns.message.from_wire(wire)
    assert {rrset.name for rrset in read.update} == {dns.name.from_text(NAME)}
