"""Which registrations are retired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models.registration import Outcome, Registration, key_of
from dkimctl.rotation.retirement import GRACE_PERIOD, as_result, retirement_statuses

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
UNSEEN = "no newer selector of the domain was seen published"


def ago(days: float) -> str:
    return (NOW - days * DAY).isoformat(timespec="minutes")


@pytest.fixture
def status_of(make_registration):
    """The statuses of a domain's registrations by selector, each given by its special fields.

    `seen`: for how many days it is seen published.
    """

    def status_of(**fields_of):
        registrations, publications = [], {}
        for selector, fields in fields_of.items():
            days = fields.pop("seen", None)
            if days is not None:
                publications[key_of("example.com", selector)] = NOW - days * DAY
            registrations.append(make_registration(selector=selector, **fields))
        statuses = list(retirement_statuses(registrations, publications, NOW))
        assert {status.registration for status in statuses} == set(registrations)
        return {status.registration.selector: status for status in statuses}

    return status_of


def started(days: float, **fields) -> dict:
    return {"start_date": ago(days), **fields}


def test_key_is_retired_14_days_after_its_successor_took_over(status_of):
    statuses = status_of(old=started(200), new=started(14, seen=14))
    assert [status.is_retired for status in statuses.values()] == [True, False]
    text = "its successor new started on 2026-11-07 and was first seen published on 2026-11-07"
    assert statuses["old"].reason == text
    assert "no newer selector: run `dkimctl rotate`" in statuses["new"].reason


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (started(13, seen=30), "started on 2026-11-08"),
        (started(13, seen=30), "wait until 2026-11-22T12:00+00:00"),
        (started(30, seen=13.9), "seen published on 2026-11-07: wait until 2026-11-21T14:24+00:00"),
        (started(10, seen=1), "wait until 2026-12-04T12:00+00:00"),
        (started(-3, seen=0), "its successor new starts on 2026-11-24 and was first seen"),
        (started(-3, seen=0), "wait until 2026-12-08T12:00+00:00"),
        (started(30), f"{UNSEEN}: run `dkimctl check-dns`"),
        (started(-3), UNSEEN),
        (started(30, seen=30, enable=False), "the domain has no newer selector"),
        (started(30, seen=30, code="409", record=None), "the domain has no newer selector"),
        (started(200, seen=30), "the domain has no newer selector"),
        (started(201, seen=30), "the domain has no newer selector"),
        ({"regist_date": None, "seen": 30}, "the domain has no newer selector"),
        ({"start_date": "9999-12-31T00:00+00:00", "seen": 30}, "starts on 9999-12-31"),
    ],
)  # fmt: skip
def test_reason_says_what_is_missing_until_then(status_of, new, reason):
    status = status_of(old=started(200), new=new)["old"]
    assert not status.is_retired
    assert reason in status.reason


def test_signing_starts_at_registration_without_a_start_date(status_of):
    statuses = status_of(old={"regist_date": ago(200)}, new={"regist_date": ago(20), "seen": 19})
    assert statuses["old"].is_retired
    later = status_of(old={"regist_date": ago(200)}, new=started(2, regist_date=ago(20), seen=19))
    assert not later["old"].is_retired


def test_any_successor_is_enough(status_of):
    statuses = status_of(
        first=started(400, seen=400), second=started(200, seen=200), third=started(1, seen=0)
    )
    assert [status.is_retired for status in statuses.values()] == [True, False, False]
    assert "successor second" in statuses["first"].reason
    assert "successor third" in statuses["second"].reason


def test_reason_names_the_first_successor_to_take_over(status_of):
    statuses = status_of(
        old=started(200), new=started(5, seen=4), newer=started(3), newest=started(2)
    )
    assert "its successor new started" in statuses["old"].reason
    assert "wait until 2026-12-01T12:00+00:00" in statuses["old"].reason


def test_keys_that_start_together_do_not_retire_each_other(status_of):
    statuses = status_of(one=started(100, seen=100), other=started(100, seen=100))
    assert not any(status.is_retired for status in statuses.values())


def test_disabled_key_is_retired_like_others(status_of):
    assert status_of(old=started(200, enable=False), new=started(20, seen=20))["old"].is_retired


def test_taken_and_undated_registrations_are_never_retired(status_of):
    statuses = status_of(
        theirs=started(200, code="409", record=None), undated={}, new=started(20, seen=20)
    )
    assert statuses["theirs"].reason == "it belongs to another account"
    assert "neither its start_date nor its regist_date" in statuses["undated"].reason
    assert not any(status.is_retired for status in statuses.values())


def test_domains_do_not_retire_each_other_and_names_are_case_insensitive(make_registration):
    old = make_registration("Example.com", "s1", start_date=ago(200))
    new = make_registration("example.COM", "S2", start_date=ago(20))
    other = make_registration("example.net", "s1", start_date=ago(200))
    statuses = list(
        retirement_statuses([new, other, old], {("example.com", "s2"): NOW - 20 * DAY}, NOW)
    )
    assert [(status.registration, status.is_retired) for status in statuses] == [
        (old, True), (new, False), (other, False)
    ]  # fmt: skip


def test_result_has_the_reason_and_a_new_outcome(status_of, key_records):
    statuses = status_of(
        old=started(300), broken=started(200, key_len=1024, seen=200), new=started(20, seen=20)
    )
    assert as_result(statuses["old"])[1:] == (Outcome.EXISTS, statuses["old"].reason)
    assert as_result(statuses["new"])[1:] == (Outcome.EXISTS, "")
    theirs = status_of(theirs=started(1, code="409", record=None))["theirs"]
    assert as_result(theirs).outcome is Outcome.TAKEN


REGISTRATIONS = st.lists(
    st.builds(
        Registration,
        st.just("example.com"),
        st.sampled_from(("s1", "s2", "s3", None)),
        start_date=st.none() | st.integers(-30, 30).map(ago),
        enable=st.none() | st.booleans(),
        regist_date=st.none() | st.integers(-30, 30).map(ago),
        code=st.sampled_from(("201", "409")),
    ),
    max_size=5,
)
SEEN = st.dictionaries(
    st.tuples(st.just("example.com"), st.sampled_from(("s1", "s2", "s3", ""))),
    st.integers(-30, 30).map(lambda days: NOW - days * DAY),
)


@given(REGISTRATIONS, SEEN)
def test_retired_registration_has_a_successor_that_signs_and_is_published(registrations, seen):
    """The rule, applied pair by pair."""
    statuses = list(retirement_statuses(registrations, seen, NOW))
    assert sorted(map(repr, registrations)) == sorted(
        repr(status.registration) for status in statuses
    )

    def start(one):
        dates = filter(None, (one.start_date, one.regist_date))
        return max(map(datetime.fromisoformat, dates), default=None)

    def has_taken_over(one):
        pair = one.sign_domain, one.selector or ""
        return (
            start(one) <= NOW - GRACE_PERIOD and pair in seen and seen[pair] <= NOW - GRACE_PERIOD
        )

    for status in statuses:
        old = status.registration
        expected = not old.is_taken and start(old) is not None and any(
            start(new) is not None and start(new) > start(old) and not new.is_taken
            and new.enable is not False and has_taken_over(new)
            for new in registrations
        )  # fmt: skip
        assert status.is_retired == expected
        assert status.reason


def test_key_takes_over_no_sooner_than_it_is_registered(status_of):
    statuses = status_of(
        old=started(200, regist_date=ago(200), seen=200),
        new=started(300, regist_date=ago(1), seen=1),
    )
    assert not any(status.is_retired for status in statuses.values())
    assert "wait until" in statuses["old"].reason
