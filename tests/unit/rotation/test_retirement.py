"""Which registrations are retired."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.verdicts import recording_looks
from dkimctl.models import KeyHistory, key_of
from dkimctl.names import Selection
from dkimctl.rotation.retirement import (
    GRACE_PERIOD,
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
        # Registered later, it starts earlier: the service may go by the start_date alone.
        (started(201, regist_date=ago(30), published=30), CURRENT, "no newer selector"),
        (({"regist_date": None}, KeyHistory(time(9), None, None, time(9))), CURRENT, "no newer"),
        (started(0, start_date="9999-12-31T00:00+00:00", published=30), WAITING, "on 9999-12-31"),
    ],
)  # fmt: skip
def test_reason_says_what_is_missing_until_then(status_of, new, stage, reason):
    fields, history = new
    status = status_of(old=started(200), new=(fields, history._replace(replaces="old")))["old"]
    assert status.retirement is stage
    assert reason in status.reason


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


def test_every_condition_on_a_successor_counts_whatever_the_others_are(status_of):
    """The first of each is what it takes."""
    choices = {
        "days": (20, 13, 201), "enabled": (20, 13, None), "published": (20, 13),
        "verdict": ("published", "missing"), "looked": (0, 2, -1), "disabled": (None, 1),
        "replaces": ("old", None), "default": (0, 1), "enable": (True, False),
    }  # fmt: skip
    sound = tuple(values[0] for values in choices.values())
    for chosen in itertools.product(*choices.values()):
        new = started(**dict(zip(choices, chosen, strict=True)))
        status = status_of(old=started(200), new=new)["old"]
        assert (status.retirement is RETIRED) == (chosen == sound), chosen


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
