"""What the ledger takes over of a saved result."""

from __future__ import annotations

import pytest

from dkimctl.models.registration import DnsRecord, Outcome, Registration, Result
from dkimctl.registration.importing import take_over
from dkimctl.registration.saved_results import judged


def taken_over(items, known=()):
    return take_over(judged(items), known)


def test_registrations_of_ours_are_new_or_there(make_registration):
    created, exists = make_registration(selector="s1"), make_registration(selector="s2", code="409")
    unusable = make_registration(selector="s3", key_len=1024)._replace(key_len=2048)
    unusable = unusable._replace(record=unusable.record._replace(type="CNAME"))
    taken = taken_over([created, exists, unusable])
    assert taken == ([created, exists, unusable], 0, [], [])
    assert taken_over([created, exists, unusable], taken.new) == ([], 3, [], [])


def test_what_tells_of_no_registration_of_ours_is_left_out(make_registration):
    items = [
        Registration("a.example", "s1"),
        Registration("b.example", "s1", code="500", message="later"),
        Registration("c.example", "s1", code="400", message="no"),
        Registration("d.example", "s1", code="409"),
        Registration("e.example", "s1", code="201"),
        make_registration("f..example"),
        make_registration("b\u00fccher.example"),
        make_registration("../etc/passwd"),
        make_registration("x.example\n- y.example"),
        make_registration("127.0.0.1"),
        make_registration(""),
    ]
    taken = taken_over(items)
    assert taken[:3] == ([], 0, [])
    assert [result.outcome for result in taken.left_out] == [
        Outcome.UNKNOWN, Outcome.FAILED, Outcome.INVALID, Outcome.TAKEN, Outcome.UNUSABLE,
        *[Outcome.INVALID] * 6,
    ]  # fmt: skip
    assert all(result.reason for result in taken.left_out)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({}, True),
        ({"sign_domain": "example.com", "selector": "S1"}, True),
        ({"enable": False, "start_date": "2027-01-01T00:00+00:00", "code": "409"}, True),
        ({"key_len": 1024, "record": DnsRecord("s1._domainkey.example.com", "TXT", "v=x")}, False),
        ({"record": DnsRecord("S1._domainkey.example.com", "txt", "KEY")}, True),
    ],
)
def test_another_record_is_a_conflict_and_other_attributes_are_none(
    make_registration, key_records, change, is_same
):
    there = make_registration()
    if "record" in change and is_same:
        change["record"] = change["record"]._replace(value=key_records[2048])
    found = there._replace(**change)
    taken = take_over([Result(found, Outcome.EXISTS)], [there])
    assert taken.new == taken.left_out == []
    assert (taken.there, len(taken.conflicts)) == ((1, 0) if is_same else (0, 1))


def test_of_two_in_one_file_the_first_counts(make_registration, key_records):
    first = make_registration()
    other = first._replace(record=first.record._replace(value=key_records[2048] + ";"))
    taken = taken_over([first, other, first])
    assert (taken.new, taken.there) == ([first], 1)
    assert [result.registration for result in taken.conflicts] == [other]


def test_what_somebody_else_has_stays_theirs(make_registration):
    theirs = Registration("example.com", "s1", code="409", message="already registered")
    taken = taken_over([make_registration()], [theirs])
    assert taken.new == []
    assert "somebody else" in taken.conflicts[0].reason


def test_a_record_that_the_ledger_lacks_is_taken_over(make_registration):
    without = make_registration(record=None)
    assert taken_over([make_registration()], [without]).new == [make_registration()]
