"""Which registrations have had their time."""

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
def judge(make_registration):
    """The statuses of a domain's registrations by selector, each given by its special fields.

    `seen`: for how many days it is seen published.
    """

    def judge(**told):
        registrations, publications = [], {}
        for selector, fields in told.items():
            days = fields.pop("seen", None)
            if days is not None:
                publications[key_of("example.com", selector)] = NOW - days * DAY
            registrations.append(make_registration(selector=selector, **fields))
        found = list(retirement_statuses(registrations, publications, NOW))
        assert {status.registration for status in found} == set(registrations)
        return {status.registration.selector: status for status in found}

    return judge


def started(days: float, **fields) -> dict:
    return {"start_date": ago(days), **fields}


def test_a_fortnight_after_the_successor_took_over_an_old_key_is_retired(judge):
    found = judge(old=started(200), new=started(14, seen=14))
    assert [status.is_retired for status in found.values()] == [True, False]
    text = "its successor new started on 2026-11-07 and was first seen published on 2026-11-07"
    assert found["old"].reason == text
    assert "no newer selector: run `dkimctl rotate`" in found["new"].reason


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
def test_until_then_it_is_kept_and_the_reason_says_what_is_next(judge, new, reason):
    status = judge(old=started(200), new=new)["old"]
    assert not status.is_retired
    assert reason in status.reason


def test_a_start_that_is_left_out_is_the_registration(judge):
    found = judge(old={"regist_date": ago(200)}, new={"regist_date": ago(20), "seen": 19})
    assert found["old"].is_retired
    later = judge(old={"regist_date": ago(200)}, new=started(2, regist_date=ago(20), seen=19))
    assert not later["old"].is_retired


def test_of_several_successors_any_will_do(judge):
    found = judge(
        first=started(400, seen=400), second=started(200, seen=200), third=started(1, seen=0)
    )
    assert [status.is_retired for status in found.values()] == [True, False, False]
    assert "successor second" in found["first"].reason
    assert "successor third" in found["second"].reason


def test_the_successor_that_is_nearest_to_settle_is_told(judge):
    found = judge(old=started(200), new=started(5, seen=4), newer=started(3), newest=started(2))
    assert "its successor new started" in found["old"].reason
    assert "wait until 2026-12-01T12:00+00:00" in found["old"].reason


def test_two_keys_that_start_together_do_not_retire_each_other(judge):
    found = judge(one=started(100, seen=100), other=started(100, seen=100))
    assert not any(status.is_retired for status in found.values())


def test_a_disabled_key_is_retired_like_others(judge):
    assert judge(old=started(200, enable=False), new=started(20, seen=20))["old"].is_retired


def test_what_is_not_ours_or_not_dated_is_never_retired(judge):
    found = judge(
        theirs=started(200, code="409", record=None), undated={}, new=started(20, seen=20)
    )
    assert found["theirs"].reason == "it belongs to another account"
    assert "neither its start_date nor its regist_date" in found["undated"].reason
    assert not any(status.is_retired for status in found.values())


def test_domains_do_not_retire_each_other_and_names_have_no_case(make_registration):
    old = make_registration("Example.com", "s1", start_date=ago(200))
    new = make_registration("example.COM", "S2", start_date=ago(20))
    other = make_registration("example.net", "s1", start_date=ago(200))
    found = list(
        retirement_statuses([new, other, old], {("example.com", "s2"): NOW - 20 * DAY}, NOW)
    )
    assert [(status.registration, status.is_retired) for status in found] == [
        (old, True), (new, False), (other, False)
    ]  # fmt: skip


def test_what_is_shown_has_the_reason_and_is_judged(judge, key_records):
    found = judge(
        old=started(300), broken=started(200, key_len=1024, seen=200), new=started(20, seen=20)
    )
    assert as_result(found["old"])[1:] == (Outcome.EXISTS, found["old"].reason)
    assert as_result(found["new"])[1:] == (Outcome.EXISTS, "")
    theirs = judge(theirs=started(1, code="409", record=None))["theirs"]
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
def test_whoever_is_retired_has_a_successor_that_signs_and_is_published(registrations, seen):
    """By the words of the rule, pair by pair."""
    found = list(retirement_statuses(registrations, seen, NOW))
    assert sorted(map(repr, registrations)) == sorted(repr(status.registration) for status in found)

    def start(one):
        dates = filter(None, (one.start_date, one.regist_date))
        return max(map(datetime.fromisoformat, dates), default=None)

    def has_settled(one):
        pair = one.sign_domain, one.selector or ""
        return (
            start(one) <= NOW - GRACE_PERIOD and pair in seen and seen[pair] <= NOW - GRACE_PERIOD
        )

    for status in found:
        old = status.registration
        expected = not old.is_taken and start(old) is not None and any(
            start(new) is not None and start(new) > start(old) and not new.is_taken
            and new.enable is not False and has_settled(new)
            for new in registrations
        )  # fmt: skip
        assert status.is_retired == expected
        assert status.reason


def test_a_key_takes_over_no_sooner_than_it_is_made(judge):
    found = judge(
        old=started(200, regist_date=ago(200), seen=200),
        new=started(300, regist_date=ago(1), seen=1),
    )
    assert not any(status.is_retired for status in found.values())
    assert "wait until" in found["old"].reason
