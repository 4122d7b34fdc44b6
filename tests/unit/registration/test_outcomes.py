"""The outcome for each kind of answer."""

from __future__ import annotations

import pytest

from dkimctl.models.registration import DnsRecord, DomainSpec, Outcome
from dkimctl.registration import outcomes

SPEC = DomainSpec("example.com", "s1")


@pytest.mark.interface("7.3", "code-201")
def test_201_is_created(make_registration):
    result = outcomes.of_answer(SPEC, make_registration())
    assert (result.outcome, result.reason) == (Outcome.CREATED, "")


@pytest.mark.interface("2.4", "start_date")
@pytest.mark.interface("7.3", "code-409")
def test_409_with_the_same_attributes_is_exists(make_registration):
    spec = SPEC._replace(key_len=2048, start_date="2027-01-01T09:00+09:00", default=0, enable=True)
    answer = make_registration(
        code="409", start_date="2027-01-01T00:00:00+00:00", default=0, enable=True
    )
    assert outcomes.of_answer(spec, answer).outcome is Outcome.EXISTS


@pytest.mark.interface("3.3", "change")
@pytest.mark.interface("7.3", "code-409-own")
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"key_len": 1024}, "key_len: asked for 1024, registered 2048"),
        (
            {"start_date": "2027-01-01T00:01+00:00"},
            "start_date: asked for 2027-01-01T00:01+00:00, registered 2027-01-01T00:00+00:00",
        ),
        ({"default": 1}, "default: asked for 1, registered 0"),
        ({"enable": False}, "enable: asked for false, registered true"),
    ],
)
@pytest.mark.parametrize("code", ["409", "201"])
def test_other_attributes_than_requested_are_reported(make_registration, asked, reason, code):
    answer = make_registration(
        code=code, start_date="2027-01-01T00:00+00:00", default=0, enable=True
    )
    result = outcomes.of_answer(SPEC._replace(**asked), answer)
    assert (result.outcome, result.reason) == (Outcome.DIFFERS, reason)
    again = outcomes.of_registered(SPEC._replace(**asked), result.registration)
    assert again == result, "the ledger's copy gives the same"


def test_omitted_attributes_make_no_difference(make_registration):
    answer = make_registration(code="409", enable=False, default=1)
    assert outcomes.of_answer(SPEC, answer).outcome is Outcome.EXISTS
    spec = SPEC._replace(start_date="2027-01-01T00:00+00:00", enable=True)
    assert outcomes.of_answer(spec, make_registration(code="409")).outcome is Outcome.EXISTS


def test_an_unreadable_start_date_is_a_difference(make_registration):
    spec = SPEC._replace(start_date="2027-01-01T00:00+00:00")
    answer = make_registration(code="409", start_date="soon")
    assert outcomes.of_answer(spec, answer).outcome is Outcome.DIFFERS


@pytest.mark.interface("7.3", "code-409-other")
def test_409_without_data_is_taken(make_registration):
    answer = make_registration(code="409", record=None, message="already registered")
    assert outcomes.of_answer(SPEC, answer).outcome is Outcome.TAKEN
    assert answer.is_taken


@pytest.mark.interface("2.4", "message")
@pytest.mark.interface("7.3", "code-400")
def test_400_is_invalid_with_the_message_of_the_service(make_registration):
    answer = make_registration(code="400", record=None, message="bad selector")
    result = outcomes.of_answer(SPEC, answer)
    assert (result.outcome, result.reason) == (Outcome.INVALID, "bad selector")


@pytest.mark.interface("7.3", "code-500")
@pytest.mark.parametrize("code", ["500", "503", "200", "418", "", "created"])
def test_any_other_code_is_failed(make_registration, code):
    result = outcomes.of_answer(SPEC, make_registration(code=code, message=None))
    assert result.outcome is Outcome.FAILED
    assert code in result.reason


@pytest.mark.parametrize("code", ["201", "409"])
def test_a_record_with_a_fault_is_unusable(make_registration, key_records, code):
    record = DnsRecord("s1._domainkey.evil.example", "TXT", key_records[2048])
    result = outcomes.of_answer(SPEC, make_registration(code=code, record=record))
    assert result.outcome is Outcome.UNUSABLE
    assert "evil.example" in result.reason


def test_201_without_a_record_is_unusable_not_taken(make_registration):
    result = outcomes.of_answer(SPEC, make_registration(record=None))
    assert result.outcome is Outcome.UNUSABLE


@pytest.mark.parametrize("code", ["201", "409"])
def test_an_omitted_key_length_is_read_from_the_key(make_registration, key_records, code):
    record = DnsRecord("s1._domainkey.example.com", "TXT", key_records[1024])
    answer = make_registration(key_len=None, record=record, code=code)
    result = outcomes.of_answer(SPEC._replace(key_len=2048), answer)
    assert result.outcome is Outcome.DIFFERS
    assert result.registration.key_len == 1024
    good = Outcome.CREATED if code == "201" else Outcome.EXISTS
    assert outcomes.of_answer(SPEC, answer).outcome is good


def test_failure_without_selector_is_unknown_since_it_may_be_registered(
    make_registration,
):
    answer = make_registration(code="500", record=None, message="oops")
    result = outcomes.of_answer(DomainSpec("example.com"), answer)
    assert (result.outcome, result.reason) == (Outcome.UNKNOWN, "the service answered 500: oops")
    assert result.registration.code is None
    assert outcomes.of_answer(SPEC, answer).outcome is Outcome.FAILED


class TestRegistrationFor:
    """Which known registration an entry means."""

    def test_the_same_selector_in_any_case(self, make_registration):
        known = [make_registration(selector="S1"), make_registration(selector="s2")]
        assert outcomes.registration_for(SPEC, known) is known[0]
        assert outcomes.registration_for(SPEC._replace(selector="s3"), known) is None

    def test_without_selector_the_newest_that_is_as_requested(self, make_registration):
        known = [
            make_registration(selector="a", key_len=1024),
            make_registration(selector="b"),
            make_registration(selector="c"),
        ]
        assert outcomes.registration_for(DomainSpec("example.com"), known) is known[2]
        assert outcomes.registration_for(DomainSpec("example.com", key_len=1024), known) is known[0]

    def test_without_selector_the_newest_of_those_that_differ(self, make_registration):
        known = [make_registration(selector="a"), make_registration(selector="b")]
        spec = DomainSpec("example.com", key_len=1024)
        assert outcomes.registration_for(spec, known) is known[1]

    def test_another_accounts_is_not_meant_without_selector(self, make_registration):
        known = [make_registration(code="409", record=None)]
        assert outcomes.registration_for(DomainSpec("example.com"), known) is None
        assert outcomes.registration_for(SPEC, known) is known[0]

    def test_one_without_record_is_meant_so_that_no_second_is_made(self, make_registration):
        known = [make_registration(selector=None, record=None)]
        assert outcomes.registration_for(DomainSpec("example.com"), known) is known[0]
