"""Which registrations are retired."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from dkimctl.cli import checking
from dkimctl.cli.checking import review_now
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Check, Finding, Looks, Verdict
from dkimctl.models import DnsRecord, KeyHistory
from dkimctl.rotation.retirement import (
    KnownKeys,
    Retirement,
    RetirementPolicy,
    review,
    statuses_of,
)
from dkimctl.settings.rotation import Policies, RotationSettings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RetirementPolicy(NOW, NOW - DAY)
ASSUMING = POLICY._replace(assume_successors=True)
RETIRED, DUE, SIGNING, WAITING, UNKNOWN, CURRENT = Retirement


def ago(days: float) -> str:
    return (NOW - days * DAY).isoformat(timespec="minutes")


def time(days: float | None) -> datetime | None:
    return None if days is None else NOW - days * DAY


def started(days: float, *, enabled: float | None = 1000, disabled: float | None = None,
            replaces: str | None = None, published: float | None = None, looked: float = 0,
            verdict: str | None = None, passed: int | None = None,
            **fields) -> tuple[dict, KeyHistory]:  # fmt: skip
    """A key that has started so many days ago; its other times are in days ago, too."""
    if published is not None:
        verdict = verdict or "published"
    history = KeyHistory(
        time(enabled), time(disabled), replaces, time(published),
        time(looked) if verdict else None, verdict,
        passed_on=None if passed is None else (NOW - passed * DAY).date(),
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
        (started(-3), WAITING, "was never seen published: run `dkimctl check-dns`"),
        (started(90, published=90, enabled=2), WAITING, "was enabled on 2026-11-19"),
        (started(30), DUE, "but was never seen published"),
        # Since when it is published is not known.
        (started(30, verdict="published"), DUE, "DNS on 2026-11-21: published"),
        (started(30, published=-400), DUE, "was seen published from 2027"),  # by such a clock
        (started(30, published=30, verdict="mismatch"), DUE, "was seen published from"),
        (started(30, published=30, looked=1.1), DUE, "from 2026-10-22 to 2026-11-20"),
        (started(30, published=30, looked=-1), DUE, "to 2026-11-22"),  # by a clock that was wrong
        (started(30, verdict="missing", looked=2), DUE, "DNS on 2026-11-19: missing"),
        (started(30, published=30, code="409", record=None), CURRENT, "no newer selector"),
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


@pytest.mark.parametrize(
    "new",
    [started(20, published=20, default=1), started(20, published=20, enable=False),
     started(200, published=20), started(20, published=20, replaces="another")],
)  # fmt: skip
def test_some_keys_are_no_successor_by_any_assumption(status_of, new):
    for policy in (POLICY, ASSUMING):
        assert stages(status_of(policy, old=started(200), new=new))[0] is CURRENT


def test_what_replaces_an_assumed_successor_is_one(status_of):
    """The key in between was rotated, and disabled or removed from DNS."""
    for between in (started(100, enable=False, disabled=10), started(100, verdict="missing")):
        new = started(20, replaces="between", published=20)
        keys = {"old": started(200), "between": between, "new": new}
        assert stages(status_of(ASSUMING, **keys)) == [RETIRED, RETIRED, CURRENT]
        assert stages(status_of(**keys)) == [UNKNOWN, RETIRED, CURRENT]


def test_a_successor_with_an_unusable_record_is_not_looked_at(make_keys, monkeypatch, key_records):
    record = DnsRecord("new._domainkey.example.com", "TXT", key_records[1024])  # not 2048
    new = started(20, replaces="old", published=20, record=record)
    keys = make_keys(old=started(200), new=new)
    known = KnownKeys([keys], frozenset(keys))
    monkeypatch.setattr(checking, "open_source", pytest.fail)
    session: Any = SimpleNamespace(reporter=Reporter())
    assert known.statuses(POLICY)[0].retirement is RETIRED
    statuses = review_now(session, known, POLICY, restarts=False)
    assert RETIRED not in [each.retirement for each in statuses]


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


@pytest.mark.parametrize(
    ("verdicts", "retirement", "is_unanswered"),
    [((Verdict.PUBLISHED, Verdict.NO_ANSWER), RETIRED, False),
     ((Verdict.MISSING, Verdict.NO_ANSWER), DUE, False), ((Verdict.REVOKED,) * 2, DUE, False),
     ((Verdict.NO_ANSWER,) * 2, DUE, True)],
)  # fmt: skip
def test_what_dns_answers_now_decides(make_keys, verdicts, retirement, is_unanswered):
    """One of two successors that answers is an answer: a no, and not a failure of DNS."""
    sound = {"replaces": "old", "published": 20, "looked": 0.1}
    keys = make_keys(old=started(200), new=started(20, **sound), other=started(20, **sound))
    old, *successors = keys
    looks = Looks()
    checks = {
        key.key: Check("example.com", key.selector, "", None, None, Finding(verdict))
        for key, verdict in zip(successors, verdicts, strict=True)
    }
    for check in checks.values():
        looks.add(check)
    [status] = review(KnownKeys([keys], frozenset([old])), POLICY, checks, looks)
    assert (status.retirement, status.is_unanswered) == (retirement, is_unanswered)


def test_a_record_that_came_back_is_published_since_then(make_keys):
    keys = make_keys(new=started(30, published=20, looked=1))
    looks = Looks()
    for verdict in Verdict.MISSING, Verdict.PUBLISHED:
        looks.add(Check("example.com", "new", "", None, None, Finding(verdict)))
    [after] = KnownKeys([keys], frozenset()).after(looks, NOW).histories.values()
    assert (after.published_at, after.looked_at) == (NOW, NOW)


@pytest.mark.parametrize(
    ("passed", "began", "retirement", "is_late"),
    [
        (None, 30, RETIRED, False),
        (6, 30, RETIRED, False),
        (5, 30, SIGNING, True),
        (-1, 30, SIGNING, True),  # by a report about the day that has just begun elsewhere
        (5, 14, SIGNING, False),  # the grace period is over now
        (5, 13.9, WAITING, False),
        (5, 21, SIGNING, False),  # and by now a lead ago
        (5, 21.1, SIGNING, True),
    ],
)
def test_a_key_with_which_mail_passed_in_the_last_five_days_stays(
    status_of, passed, began, retirement, is_late
):
    new = started(began, published=30, replaces="old", passed=1)
    status = status_of(old=started(200, passed=passed), new=new)["old"]
    assert (status.retirement, status.is_late) == (retirement, is_late)
    assert status.needs_record == (retirement is not RETIRED)
    despite = status_of(
        POLICY._replace(despite_reports=True), old=started(200, passed=passed), new=new
    )
    assert despite["old"].retirement is (RETIRED if retirement is SIGNING else retirement)
    if retirement is SIGNING:
        assert status.reason == f"still signing: mail passed with it on {status.history.passed_on}"


@pytest.mark.parametrize(
    ("passed", "began", "of_new", "is_told"),
    [
        (0, 3, None, True),
        (0, 2.5, None, False),
        (1, 3, None, False),
        (5, 30, None, True),
        (6, 30, None, False),  # no mail at all since then is no proof of anything
        (None, 30, None, False),
        (0, 30, 5, False),
        (0, 30, 6, True),  # the signer was set back
        (0, 4, 4, False),
        (0, 4, 5, True),  # before it began: that was no signer of ours
    ],
)
def test_a_key_is_not_followed_if_mail_passes_only_with_it_days_after_its_successor_began(
    status_of, passed, began, of_new, is_told
):
    new = started(began, published=30, replaces="old", passed=of_new)
    status = status_of(old=started(200, passed=passed), new=new)["old"]
    assert status.is_not_followed is is_told
    told = f"and none in the last 5 days with new, which began on {new[0]['start_date'][:10]}"
    assert (told in status.reason) == is_told


def test_mail_with_any_of_its_successors_shows_that_a_key_is_followed(status_of):
    keys = {
        "first": started(400, passed=0), "second": started(200, replaces="first", published=200),
        "third": started(20, replaces="second", published=20, passed=0),
    }  # fmt: skip
    statuses = status_of(**keys)
    assert stages(statuses) == [SIGNING, RETIRED, CURRENT]
    assert not any(status.is_not_followed for status in statuses.values())


@pytest.mark.parametrize(("passed", "retirement"), [(5, SIGNING), (6, WAITING)])
def test_in_a_freeze_it_is_told_that_a_key_still_signs(status_of, passed, retirement):
    freeze = RotationSettings(freeze=((NOW - DAY, NOW + DAY),))
    new = started(30, published=30, replaces="old", passed=1)
    policy = POLICY._replace(rotation=Policies([freeze]))
    status = status_of(policy, old=started(200, passed=passed), new=new)["old"]
    assert (status.retirement, status.is_over) == (retirement, retirement is WAITING)


def test_a_successor_that_begins_at_the_end_of_all_times_is_not_too_late_to_compare(status_of):
    new = started(0, start_date="9999-12-31T23:59-12:00", published=30, replaces="old")
    assert not status_of(old=started(200, passed=0), new=new)["old"].is_not_followed
