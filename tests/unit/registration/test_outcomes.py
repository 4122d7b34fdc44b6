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
    silent = outcomes.of_answer(SPEC, answer._replace(message=None))
    assert (silent.outcome, silent.reason) == (Outcome.INVALID, "the service answered 400")


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


@pytest.mark.parametrize("code", ["201", "409"])
def test_a_key_of_another_length_than_the_service_states_is_unusable(
    make_registration, key_records, code
):
    record = DnsRecord("s1._domainkey.example.com", "TXT", key_records[1024])
    result = outcomes.of_answer(SPEC, make_registration(record=record, code=code))
    assert (result.outcome, result.reason) == (
        Outcome.UNUSABLE,
        "the key has 1024 bits, not 2048",
    )


@pytest.mark.parametrize("code", ["201", "409"])
def test_a_record_with_a_fault_stays_unusable_if_its_attributes_differ(make_registration, code):
    """A key that differs may be published, but this one may not."""
    record = DnsRecord("s1._domainkey.example.com", "TXT", "v=DKIM1; p=")
    answer = make_registration(code=code, record=record, enable=False)
    result = outcomes.of_answer(SPEC._replace(enable=True), answer)
    assert (result.outcome, "no public key" in result.reason) == (Outcome.UNUSABLE, True)


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


def test_failure_without_selector_is_unknown_since_it_may_be_registered(make_registration):
    answer = make_registration(code="500", record=None, message="oops")
    result = outcomes.of_answer(DomainSpec("example.com"), answer)
    assert (result.outcome, result.reason) == (Outcome.UNKNOWN, "the service answered 500: oops")
    assert result.registration.code is None
    assert outcomes.of_answer(SPEC, answer).outcome is Outcome.FAILED


class TestWithoutSelector:
    """An entry without selector stands for a key that has a length and a start already."""

    SPEC = DomainSpec("example.com", None, 2048, "2027-01-01T00:00+00:00")

    @pytest.fixture
    def old(self, make_registration):
        """A key with other attributes than a new one would get."""
        return lambda **fields: make_registration(
            key_len=1024, start_date="2026-01-01T00:00+00:00", default=0, enable=True, **fields
        )

    def test_key_length_and_start_are_those_of_a_new_key(self, old):
        assert outcomes.of_registered(self.SPEC, old()).outcome is Outcome.EXISTS
        assert outcomes.of_answer(self.SPEC, old(code="409")).outcome is Outcome.EXISTS

    @pytest.mark.parametrize("asked", [{"default": 1}, {"enable": False}])
    def test_default_and_enable_are_those_of_any_key(self, old, asked):
        spec = self.SPEC._replace(**asked)
        assert outcomes.of_registered(spec, old()).outcome is Outcome.DIFFERS
        assert outcomes.of_answer(spec, old(code="409")).outcome is Outcome.DIFFERS

    def test_a_new_key_is_compared_with_all_that_was_asked(self, old):
        result = outcomes.of_answer(self.SPEC, old())
        assert result.outcome is Outcome.DIFFERS
        assert "key_len: asked for 2048, registered 1024; start_date: asked for" in result.reason


class TestRegistrationFor:
    """Which known registration an entry means."""

    NOW = datetime(2026, 11, 21, tzinfo=UTC)
    BEGUN, TO_COME = "2026-11-21T00:00+00:00", "2026-11-21T00:01+00:00"

    @pytest.fixture
    def key(self, make_registration):
        """Make a key that was registered in a month of 2026."""

        def make(selector, month, **fields):
            return make_registration(
                selector=selector, regist_date=f"2026-{month:02}-01T00:00:00+00:00", **fields
            )

        return make

    def chosen(self, *known, **stated) -> str | None:
        spec = DomainSpec("example.com", **stated)
        one = outcomes.registration_for(spec, known, self.NOW)
        return None if one is None else one.selector

    def test_the_same_selector_in_any_case(self, key):
        known = [key("S1", 2), key("s2", 1)]
        assert self.chosen(*known, selector="s1") == "S1"
        assert self.chosen(*known, selector="s3") is None

    def test_without_selector_the_newest_that_signs(self, key):
        assert self.chosen(key("s1", 1), key("s2", 2, start_date=self.BEGUN)) == "s2"
        assert self.chosen(key("s2", 2), key("s1", 1)) == "s2", "whatever the ledger's order"
        assert self.chosen(key("s1", 1), key("s2", 2, start_date=self.TO_COME)) == "s1"
        assert self.chosen(key("s1", 1), key("s2", 2, enable=False)) == "s1"

    def test_without_one_that_signs_the_newest(self, key):
        to_come = {"start_date": self.TO_COME}
        assert self.chosen(key("s1", 1, **to_come), key("s2", 2, **to_come)) == "s2"
        assert self.chosen(key("s1", 1, enable=False), key("s2", 2, enable=False)) == "s2"
        assert self.chosen(key("s1", 1, enable=False), key("s2", 2, **to_come)) == "s2"

    def test_a_key_without_dates_is_old_and_has_begun(self, key, make_registration):
        undated = make_registration(selector="s0")
        assert self.chosen(key("s1", 1), undated) == "s1"
        assert self.chosen(key("s1", 1, start_date=self.TO_COME), undated) == "s0"

    def test_one_with_the_default_and_enable_that_are_asked_for(self, key):
        known = [
            key("s1", 1, enable=True, default=1),
            key("s2", 2, enable=False, default=0),
            key("s3", 3, enable=True, default=0),
        ]
        assert self.chosen(*known, default=1) == "s1"
        assert self.chosen(*known, enable=False) == "s2"
        assert self.chosen(*known) == self.chosen(*known, default=7) == "s3"
        assert self.chosen(*known, key_len=1024) == "s3", "which is for a new key"

    def test_another_accounts_is_not_meant_without_selector(self, make_registration):
        taken = make_registration(code="409", record=None)
        assert self.chosen(taken) is None
        assert self.chosen(taken, selector="s1") == "s1"

    def test_one_without_record_is_meant_so_that_no_second_is_made(self, make_registration):
        known = [make_registration(selector=None, record=None)]
        assert outcomes.registration_for(DomainSpec("example.com"), known, self.NOW) is known[0]


class TestBeginsEarly:
    """A key that was to sign later by the clock here, but not by that of the service."""

    NOW = datetime(2026, 11, 21, tzinfo=UTC)
    START = "2026-11-22T00:00+00:00"
    SPEC = DomainSpec("example.com", "s1", start_date=START)

    @pytest.mark.parametrize(
        ("stated", "answered", "expected"),
        [
            ({}, {}, True),
            ({}, {"regist_date": "2026-11-21T23:59:59+00:00"}, False),
            ({}, {"regist_date": "2026-11-22T09:00:00+09:00"}, True),
            ({}, {"start_date": "2026-11-23T00:00+00:00"}, True),  # moved to the registration
            ({}, {"start_date": "2026-11-23T00:01+00:00"}, False),
            ({}, {"code": "409"}, False),
            ({}, {"enable": False}, False),
            ({}, {"regist_date": "soon"}, False),
            ({"start_date": "2026-11-21T00:00+00:00"}, {}, False),
            ({"start_date": "2026-11-21T00:00+00:00", "replaces": "s0"}, {}, True),
        ],
    )
    def test_it_shows_in_the_dates_of_a_new_key(
        self, make_registration, stated, answered, expected
    ):
        fields = {"start_date": self.START, "regist_date": "2026-11-23T00:00:00+00:00"} | answered
        spec = self.SPEC._replace(**stated)
        assert outcomes.begins_early(spec, make_registration(**fields), self.NOW) is expected


@pytest.mark.interface("2.3", "selector-optional")
@pytest.mark.interface("2.4", "items")
def test_order_does_not_matter():
    specs = [DomainSpec("a.example", "s"), DomainSpec("b.example"), DomainSpec("a.example", "t")]
    items = [
        Registration("a.example", "t"),
        Registration("b.example", "chosen"),
        Registration("a.example", "s"),
    ]
    answers, strays = match(specs, items)
    assert [answer.selector for answer in answers] == ["s", "chosen", "t"]
    assert strays == []


@pytest.mark.interface("2.3", "selector-unique")
def test_case_does_not_matter():
    answers, _ = match([DomainSpec("a.example", "S1")], [Registration("A.Example", "s1")])
    assert answers == [Registration("a.example", "s1")]


def test_an_item_without_selector_belongs_to_the_only_entry_of_its_domain():
    specs = [
        DomainSpec("a.example", "s"),
        DomainSpec("b.example", "s"),
        DomainSpec("b.example", "t"),
    ]
    answers, strays = match(specs, [Registration("a.example"), Registration("b.example")])
    assert answers == [Registration("a.example", "s"), None, None]
    assert strays == [Registration("b.example")]


@pytest.mark.interface("2.4", "sign_domain")
def test_items_that_were_not_requested_are_strays():
    specs = [DomainSpec("a.example", "s")]
    items = [Registration("c.example", "s"), Registration("a.example", "other")]
    answers, strays = match(specs, items)
    assert answers == [None]
    assert strays == items


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
