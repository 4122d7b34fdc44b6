"""Items find their entries, and give each an outcome."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models import DnsRecord, DomainSpec, Outcome, Registration
from dkimctl.registration import outcomes
from dkimctl.registration.outcomes import match

SPEC = DomainSpec("example.com", "s1")


START = "2027-01-01T00:00+00:00"


@pytest.mark.interface("2.4", "start_date", "message")
@pytest.mark.interface("7.3", "code-201", "code-409", "code-409-other", "code-400", "code-500")
@pytest.mark.parametrize(
    ("stated", "answered", "outcome", "reason"),
    [
        ({}, {}, Outcome.CREATED, ""),
        (
            {"key_len": 2048, "start_date": "2027-01-01T09:00+09:00", "default": 0, "enable": True},
            {"code": "409", "start_date": START, "default": 0, "enable": True},
            Outcome.EXISTS, "",
        ),
        ({}, {"code": "409", "enable": False, "default": 1}, Outcome.EXISTS, ""),
        ({"start_date": START, "enable": True}, {"code": "409"}, Outcome.EXISTS, ""),
        ({"start_date": START}, {"code": "409", "start_date": "soon"}, Outcome.DIFFERS, "soon"),
        ({}, {"code": "409", "record": None}, Outcome.TAKEN, "another client"),
        ({}, {"code": "400", "record": None, "message": "bad"}, Outcome.INVALID, "bad"),
        ({}, {"code": "400", "message": None}, Outcome.INVALID, "the service answered 400"),
        *(({}, {"code": code, "message": None}, Outcome.FAILED, code)
          for code in ("500", "503", "200", "", "created")),
        ({}, {"record": None}, Outcome.UNUSABLE, ""),
        # It may be registered nevertheless.
        ({"selector": None}, {"code": "500", "record": None, "message": "oops"}, Outcome.UNKNOWN,
         "the service answered 500: oops"),
    ],
)  # fmt: skip
def test_an_answer_has_an_outcome(make_registration, stated, answered, outcome, reason):
    answer = make_registration(**answered)
    result = outcomes.of_answer(SPEC._replace(**stated), answer)
    assert (result.outcome, reason in result.reason) == (outcome, True)
    assert answer.is_taken is (outcome is Outcome.TAKEN)
    assert (result.registration.code is None) is (outcome is Outcome.UNKNOWN)


@pytest.mark.interface("3.3", "change")
@pytest.mark.interface("7.3", "code-409-own")
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"key_len": 1024}, "key_len: asked for 1024, registered 2048"),
        ({"start_date": "2027-01-01T00:01+00:00"},
         f"start_date: asked for 2027-01-01T00:01+00:00, registered {START}"),
        ({"default": 1}, "default: asked for 1, registered 0"),
        ({"enable": False}, "enable: asked for false, registered true"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", ["409", "201"])
def test_other_attributes_than_requested_are_reported(make_registration, asked, reason, code):
    answer = make_registration(code=code, start_date=START, default=0, enable=True)
    result = outcomes.of_answer(SPEC._replace(**asked), answer)
    assert (result.outcome, result.reason.split("; ")[0]) == (Outcome.DIFFERS, reason)
    again = outcomes.of_registered(SPEC._replace(**asked), result.registration)
    assert again == result, "the ledger's copy gives the same"


@pytest.mark.parametrize("code", ["201", "409"])
@pytest.mark.parametrize(
    ("domain", "value", "reason"),
    [("evil.example", 2048, "evil.example"), ("example.com", 1024, "1024 bits, not 2048"),
     ("example.com", "v=DKIM1; p=", "no public key")],
)  # fmt: skip
def test_a_record_with_a_fault_is_unusable(
    make_registration, key_records, code, domain, value, reason
):
    """Also if its attributes differ: a key that differs may be published, but this one may not."""
    record = DnsRecord(f"s1._domainkey.{domain}", "TXT", key_records.get(value, value))
    answer = make_registration(code=code, record=record, enable=False)
    result = outcomes.of_answer(SPEC._replace(enable=True), answer)
    assert (result.outcome, reason in result.reason) == (Outcome.UNUSABLE, True)


def test_what_nobody_stated_makes_a_difference_only_to_a_new_key(make_registration):
    spec = DomainSpec("example.com", "s1", 2048, START, implied=("key_len", "start_date"))
    old = make_registration(key_len=1024, start_date="2026-01-01T00:00+00:00")
    assert outcomes.of_answer(spec, old._replace(code="409")).outcome is Outcome.EXISTS
    new = outcomes.of_answer(spec, old)
    assert new.outcome is Outcome.DIFFERS
    assert "key_len: asked for 2048, registered 1024; start_date: asked for" in new.reason


NOW = datetime(2026, 11, 21, tzinfo=UTC)
BEGUN, TO_COME = "2026-11-21T00:00+00:00", "2026-11-21T00:01+00:00"
# Keys: selector, month of the registration (or no date), other fields.
LATER = {"start_date": TO_COME}
OFF = {"enable": False}
MARKED = [(f"s{number}", number, {"enable": enable, "default": default})
          for number, enable, default in ((1, True, 1), (2, False, 0), (3, True, 0))]  # fmt: skip
THEIRS = {"code": "409", "record": None}


@pytest.mark.parametrize(
    ("known", "stated", "expected"),
    [
        # The same selector, in any case; without one the newest that signs, in any order.
        ([("S1", 2, {}), ("s2", 1, {})], {"selector": "s1"}, "S1"),
        ([("S1", 2, {}), ("s2", 1, {})], {"selector": "s3"}, None),
        ([("s1", 1, {}), ("s2", 2, {"start_date": BEGUN})], {}, "s2"),
        ([("s2", 2, {}), ("s1", 1, {})], {}, "s2"),
        ([("s1", 1, {}), ("s2", 2, LATER)], {}, "s1"),
        ([("s1", 1, {}), ("s2", 2, OFF)], {}, "s1"),
        # If none signs, the newest.
        ([("s1", 1, LATER), ("s2", 2, LATER)], {}, "s2"),
        ([("s1", 1, OFF), ("s2", 2, OFF)], {}, "s2"),
        # One without dates is old and has begun.
        ([("s1", 1, {}), ("s0", None, {})], {}, "s1"),
        ([("s1", 1, LATER), ("s0", None, {})], {}, "s0"),
        # First those with the default and enable that are asked for.
        (MARKED, {"default": 1}, "s1"),
        (MARKED, {"enable": False}, "s2"),
        (MARKED, {}, "s3"),
        (MARKED, {"default": 7}, "s3"),
        (MARKED, {"key_len": 1024}, "s3"),  # which is for a new key
        # Another account's is not meant without selector.
        ([("s1", None, THEIRS)], {}, None),
        ([("s1", None, THEIRS)], {"selector": "s1"}, "s1"),
        # One without record is meant, so that no second is made.
        ([("s1", None, {"record": None})], {}, "s1"),
    ],
)
def test_which_known_registration_an_entry_means(make_registration, known, stated, expected):
    registrations = [
        make_registration(
            selector=selector, regist_date=month and f"2026-{month:02}-01T00:00:00Z", **fields
        )
        for selector, month, fields in known
    ]
    spec = DomainSpec("example.com", **stated)
    meant = outcomes.registration_for(spec, registrations, NOW)
    assert (meant and meant.selector) == expected


@pytest.mark.parametrize(
    ("stated", "answered", "expected"),
    [({}, {}, True), ({}, {"regist_date": "2026-11-21T23:59:59+00:00"}, False),
     ({}, {"regist_date": "2026-11-22T09:00:00+09:00"}, True),
     ({}, {"start_date": "2026-11-23T00:00+00:00"}, True),  # moved to the registration
     ({}, {"start_date": "2026-11-23T00:01+00:00"}, False), ({}, {"code": "409"}, False),
     ({}, {"enable": False}, False), ({}, {"regist_date": "soon"}, False),
     ({"start_date": BEGUN}, {}, False), ({"start_date": BEGUN, "replaces": "s0"}, {}, True)],
)  # fmt: skip
def test_a_key_that_was_to_sign_later_by_the_clock_here_shows_in_its_dates(
    make_registration, stated, answered, expected
):
    start = "2026-11-22T00:00+00:00"
    fields = {"start_date": start, "regist_date": "2026-11-23T00:00:00+00:00"} | answered
    spec = SPEC._replace(**{"start_date": start} | stated)
    assert outcomes.begins_early(spec, make_registration(**fields), NOW) is expected


@pytest.mark.interface("2.4", "sign_domain")
def test_an_item_without_selector_belongs_to_the_only_entry_of_its_domain():
    specs = [DomainSpec(f"{pair[0]}.example", pair[1]) for pair in ("as", "bs", "bt")]
    items = [Registration("a.example"), Registration("b.example"), Registration("c.example", "s")]
    answers, strays = match(specs, items)
    assert answers == [Registration("a.example", "s"), None, None]
    assert strays == items[1:]


def test_of_two_items_for_an_entry_the_first_with_a_record_counts(make_registration):
    """Neither a later key, nor an error beside it, may take its place."""
    specs = [DomainSpec("a.example", "s")]
    error = Registration("a.example", "s", code="500")
    first = make_registration("a.example", "s")
    second = first._replace(record=first.record._replace(value="another"))
    for items in ([first, second], [error, first, second], [first, error, second]):
        answers, strays = match(specs, items)
        assert answers == [first]
        assert sorted(strays, key=str) == sorted((i for i in items if i != first), key=str)
    assert match(specs, [error, error._replace(code="400")])[0] == [error]


names = st.sampled_from(["a.example", "A.example", "b.example", ""])
selectors = st.sampled_from([None, "s", "S", "t"])


@pytest.mark.interface("2.3", "selector-optional", "selector-unique")
@pytest.mark.interface("2.4", "items")
@given(
    st.sets(
        st.tuples(st.sampled_from(["a.example", "b.example"]), st.sampled_from([None, "s", "t"]))
    ),
    st.lists(st.tuples(names, selectors)),
)
def test_every_item_is_an_answer_or_a_stray_and_answers_are_for_their_domain(pairs, answered):
    specs = [DomainSpec(domain, selector) for domain, selector in sorted(pairs, key=str)]
    items = [Registration(domain, selector) for domain, selector in answered]
    answers, strays = match(specs, items)
    assert sum(answer is not None for answer in answers) + len(strays) == len(items)
    for spec, answer in zip(specs, answers, strict=True):
        if answer is not None:
            assert answer.sign_domain == spec.sign_domain
            assert spec.selector in (None, (answer.selector or "").lower())
