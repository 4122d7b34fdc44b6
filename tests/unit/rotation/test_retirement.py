"""Which registrations are retired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.verdicts import Check, Finding, Looks, Verdict, recording_looks
from dkimctl.models import KeyHistory, Registration, key_of
from dkimctl.names import Selection
from dkimctl.rotation.retirement import (
    GRACE_PERIOD,
    KnownKeys,
    Retirement,
    RetirementPolicy,
    read_known_keys,
    review,
    statuses_of,
)
from rotation_world import Dns

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RetirementPolicy(NOW, NOW - DAY)
ASSUMING = POLICY._replace(assume_successors=True)
RETIRED, DUE, WAITING, UNKNOWN, CURRENT = Retirement


def ago(days: float) -> str:
    return (NOW - days * DAY).isoformat(timespec="minutes")


def time(days: float | None) -> datetime | None:
    return None if days is None else NOW - days * DAY


def started(days: float, *, enabled: float | None = 1000, disabled: float | None = None,
            replaces: str | None = None, published: float | None = None, looked: float = 0,
            verdict: str | None = None, **fields) -> tuple[dict, KeyHistory]:  # fmt: skip
    """A key that has started so many days ago; its other times are in days ago, too."""
    if published is not None:
        verdict = verdict or "published"
    history = KeyHistory(
        time(enabled), time(disabled), replaces, time(published),
        time(looked) if verdict else None, verdict,
    )  # fmt: skip
    return {"start_date": ago(days), **fields}, history


@pytest.fixture
def make_keys(make_registration):
    """The history of each registration, from what `started` gives for each selector."""

    def make_keys(**keys):
        return {
            make_registration(selector=selector, **fields): history
            for selector, (fields, history) in keys.items()
        }

    return make_keys


@pytest.fixture
def status_of(make_keys):
    """The statuses of a domain's keys, by selector."""

    def status_of(policy=POLICY, **keys):
        histories = make_keys(**keys)
        statuses = list(statuses_of(histories, policy))
        assert {status.registration for status in statuses} == set(histories)
        return {status.registration.selector: status for status in statuses}

    return status_of


def stages(statuses) -> list[Retirement]:
    return [status.retirement for status in statuses.values()]


@pytest.mark.parametrize(
    ("new", "stage", "reason"),
    [
        (started(13, published=30), WAITING, "started on 2026-11-08"),
        (started(13, published=30), WAITING, "wait until 2026-11-22T12:00+00:00"),
        (started(30, published=13.9), WAITING, "wait until 2026-11-21T14:24+00:00"),
        (started(10, published=1), WAITING, "wait until 2026-12-04T12:00+00:00"),
        (started(-3, published=0), WAITING, "its successor new starts on 2026-11-24"),
        (started(-3), WAITING, "was never seen published: run `dkimctl check-dns`"),
        (started(90, published=90, enabled=2), WAITING, "was enabled on 2026-11-19"),
        (started(90, published=90, enabled=2), WAITING, "wait until 2026-12-03T12:00+00:00"),
        (started(30), DUE, "but was never seen published"),
        # Since when it is published is not known.
        (started(30, verdict="published"), DUE, "DNS on 2026-11-21: published"),
        (started(30, published=-400), DUE, "was seen published from 2027"),  # by such a clock
        (started(30, published=30, verdict="mismatch"), DUE, "was seen published from"),
        (started(30, published=30, looked=1.1), DUE, "from 2026-10-22 to 2026-11-20"),
        (started(30, published=30, looked=-1), DUE, "to 2026-11-22"),  # by a clock that was wrong
        (started(30, verdict="missing", looked=2), DUE, "DNS on 2026-11-19: missing"),
        (started(30, published=30, enable=False), CURRENT, "no newer selector"),
        (started(30, published=30, disabled=1), CURRENT, "no newer selector"),
        (started(30, published=30, enabled=None), CURRENT, "no newer selector"),
        (started(30, published=30, code="409", record=None), CURRENT, "no newer selector"),
        (started(30, published=30, default=1), CURRENT, "no newer selector"),
        (started(200, published=30), CURRENT, "no newer selector"),
        (started(201, published=30), CURRENT, "no newer selector"),
        (({"regist_date": None}, KeyHistory(time(9), None, None, time(9))), CURRENT, "no newer"),
        (started(0, start_date="9999-12-31T00:00+00:00", published=30), WAITING, "on 9999-12-31"),
    ],
)  # fmt: skip
def test_reason_says_what_is_missing_until_then(status_of, new, stage, reason):
    fields, history = new
    status = status_of(old=started(200), new=(fields, history._replace(replaces="old")))["old"]
    assert status.retirement is stage
    assert reason in status.reason


def test_a_start_date_before_the_registration_must_be_later_as_well(status_of):
    """The service may go by the start_date alone, and sign with the old key."""
    old = started(200, regist_date=ago(210))
    looks = {"regist_date": ago(30), "replaces": "old", "published": 30}
    assert stages(status_of(old=old, new=started(201, **looks)))[1] is CURRENT
    assert stages(status_of(old=old, new=started(200, **looks)))[0] is CURRENT
    assert stages(status_of(old=old, new=started(199, **looks)))[0] is RETIRED


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (started(200, enable=False, enabled=None, disabled=200), "it was never enabled"),
        (started(-2), "it starts on 2026-11-23"),
        (started(200, code="409", record=None), "it belongs to another account"),
        (({"start_date": None}, KeyHistory(NOW)), "neither its start_date nor its regist_date"),
    ],
)
def test_a_key_that_never_signed_is_not_replaced(status_of, old, reason):
    """Such as a standby key, which is kept disabled for an emergency."""
    new = started(20, published=20, replaces="old")
    for policy in (POLICY, ASSUMING):
        status = status_of(policy, old=old, new=new)["old"]
        assert (status.retirement, reason in status.reason) == (CURRENT, True)


def test_a_successor_replaces_what_its_predecessor_replaced(status_of):
    statuses = status_of(
        first=started(400), second=started(200, replaces="first", verdict="missing"),
        third=started(20, replaces="second", published=20),
    )  # fmt: skip
    assert stages(statuses) == [RETIRED, RETIRED, CURRENT]
    assert "successor third" in statuses["first"].reason
    successors = [one.selector for one in statuses["first"].successors]
    assert successors == ["third", "second"], "the best first"


def test_without_a_record_of_it_no_key_is_a_successor(status_of):
    statuses = status_of(old=started(200), new=started(20, published=20))
    assert stages(statuses) == [UNKNOWN, CURRENT]
    assert "it is not recorded whether new replaces it" in statuses["old"].reason


SELECTORS = ("s1", "s2", "s3")
DAYS = st.integers(-30, 30)
KEYS = st.dictionaries(
    st.sampled_from(SELECTORS),
    st.tuples(
        st.builds(
            Registration,
            st.just("example.com"),
            start_date=st.none() | DAYS.map(ago),
            default=st.sampled_from((None, 0, 1)),
            enable=st.none() | st.booleans(),
            regist_date=st.none() | DAYS.map(ago),
            code=st.sampled_from(("201", "409")),
        ),
        st.builds(
            KeyHistory,
            st.none() | DAYS.map(time),
            st.none() | DAYS.map(time),
            st.none() | st.sampled_from(SELECTORS),
            st.none() | DAYS.map(time),
            st.none() | DAYS.map(time),
            st.none() | st.sampled_from(("published", "missing")),
        ),
    ),
)


@given(KEYS, st.booleans())
def test_a_retired_key_has_a_successor_that_signs_and_is_published(keys, assume):
    """The rule, applied pair by pair."""
    registrations = {name: one._replace(selector=name) for name, (one, _) in keys.items()}
    histories = {registrations[name]: history for name, (_, history) in keys.items()}
    policy = POLICY._replace(assume_successors=assume)
    statuses = list(statuses_of(histories, policy))
    assert len(statuses) == len(registrations)

    def start(name):
        one = registrations[name]
        dates = filter(None, (one.start_date, one.regist_date))
        return max(map(datetime.fromisoformat, dates), default=None)

    def is_made_for(name, old, steps=3):
        replaces = keys[name][1].replaces
        return steps > 0 and replaces is not None and (
            replaces == old or (replaces in keys and is_made_for(replaces, old, steps - 1))
        )  # fmt: skip

    def is_assumed(new, old, steps=3):
        """A newer key of which nothing is recorded, or made for one."""
        replaces = keys[new][1].replaces
        if replaces is None:
            return is_newer(new, old)
        return steps > 0 and replaces in keys and is_assumed(replaces, old, steps - 1)

    def is_newer(new, old):
        starts = start(new), start(old)
        return (
            None not in starts and starts[0] > starts[1]
            and (registrations[new].default or 0) == (registrations[old].default or 0)
        )  # fmt: skip

    def replaces(new, old):
        one, history = registrations[new], keys[new][1]
        may = is_made_for(new, old) or (assume and is_assumed(new, old))
        times = (start(new), history.enabled_at, history.published_at)
        return (
            may and not one.is_taken and one.enable is not False and history.disabled_at is None
            and (one.default or 0) == (registrations[old].default or 0)
            and None not in times and start(new) > start(old)
            and max(times) <= NOW - GRACE_PERIOD
            and history.verdict == "published"
            and history.looked_at is not None and NOW - DAY <= history.looked_at <= NOW
        )  # fmt: skip

    for status in statuses:
        name = status.registration.selector
        is_old = (
            not registrations[name].is_taken and start(name) is not None and start(name) <= NOW
            and keys[name][1].enabled_at is not None
        )  # fmt: skip
        expected = is_old and any(replaces(new, name) for new in keys)
        assert (status.retirement is RETIRED) == expected
        assert status.reason


A = "a.example"
SUCCESSOR = f"s20270630._domainkey.{A}"


@pytest.fixture
def replaced(world):
    """A key whose successor has signed for 15 days."""
    world.register(A)
    world.run()
    world.pass_time(days=180)
    world.run()
    world.pass_time(days=22)
    return world


def look(world):
    """Look at all successors; gives the status of the first key."""
    policy = RetirementPolicy(world.now, world.now - DAY)
    with (
        world.open_ledger(for_writing=False) as ledger,
        recording_looks(
            lambda: world.open_ledger(for_writing=True), on_failure=pytest.fail
        ) as looks,
    ):
        known = read_known_keys(ledger, Selection())
        checks = check_publication(
            [each for status in known.statuses(policy) for each in status.successors],
            Dns(world),
            CheckPolicy(0.0, DAY, expect_absent=False),
            progress=SimpleNamespace(checked=lambda _: None, pause=lambda *_: None),
            looks=looks,
        )
        statuses = review(known, policy, {check.key: check for check in checks}, looks)
    [status] = [one for one in statuses if one.registration.selector == "s1"]
    return status


def test_only_a_successor_that_is_published_now_retires_the_old_key(replaced):
    assert look(replaced).retirement is RETIRED
    replaced.pass_time(seconds=1)
    replaced.silent = {SUCCESSOR}
    assert look(replaced).is_unanswered
    replaced.silent = set()
    replaced.write("dns", replaced.records | {SUCCESSOR: "v=DKIM1; p="})
    replaced.pass_time(days=1)
    status = look(replaced)
    assert (status.retirement, status.is_unanswered) == (DUE, False)
    assert "DNS now: revoked" in status.reason


def test_a_successor_that_reappeared_is_waited_for(replaced):
    records = replaced.records
    replaced.write("dns", {})
    look(replaced)
    replaced.pass_time(days=5)
    replaced.write("dns", records)
    status = look(replaced)
    assert status.retirement is WAITING
    assert f"wait until {replaced.now + GRACE_PERIOD:%Y-%m-%d}" in status.reason


def test_one_of_two_successors_that_answers_is_an_answer(replaced):
    """So it is a no, and not a failure of DNS."""
    start = (replaced.now - 20 * DAY).isoformat()
    replaced.pass_time(days=-20)
    replaced.register(A, selector="other", start_date=start)
    with replaced.open_ledger(for_writing=True) as ledger:
        ledger.note_replacements({key_of(A, "other"): "s1"})
        ledger.note_looks({key_of(A, "other"): "published"})
    replaced.pass_time(days=20)
    replaced.write("dns", {})
    replaced.silent = {f"other._domainkey.{A}"}
    status = look(replaced)
    assert (status.retirement, status.is_unanswered) == (DUE, False)
    replaced.silent |= {SUCCESSOR}
    assert look(replaced).is_unanswered


def test_a_record_that_came_back_between_two_looks_is_published_since_then(make_registration):
    registration, looks = make_registration("example.com", "new"), Looks()
    history = KeyHistory(NOW - 30 * DAY, published_at=NOW - 20 * DAY, looked_at=NOW - DAY)
    for verdict in Verdict.MISSING, Verdict.PUBLISHED:
        looks.add(Check("example.com", "new", "", None, None, Finding(verdict)))
    known = KnownKeys([{registration: history}], frozenset())
    [after] = known.after(looks, NOW).histories.values()
    assert (after.published_at, after.looked_at) == (NOW, NOW)
