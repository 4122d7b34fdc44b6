"""The stage of each key, from its registration to the removal of its record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.ledger.intents import Intent
from dkimctl.ledger.ledger import DomainKeys
from dkimctl.models import KeyHistory, Registration, key_of
from dkimctl.rotation.life import KeyStage, NextAction, keys_of
from dkimctl.settings.rotation import Policies, RotationSettings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICIES = Policies()  # 180, 7 and 14 days


def ago(days: float | None) -> datetime | None:
    return None if days is None else NOW - days * DAY


def key(*, made: float = 300, starts: float | None = None, enabled: float | None = 1000,
        published: float | None = None, looked: float = 0, verdict: str | None = "published",
        replaces: str | None = None, disabled: float | None = None,
        **fields) -> tuple[dict, KeyHistory]:  # fmt: skip
    """A key; its times are in days ago."""
    starts = made if starts is None else starts
    history = KeyHistory(ago(enabled), ago(disabled), replaces, ago(published),
                         ago(looked) if verdict else None, verdict)  # fmt: skip
    dates = {"regist_date": ago(made).isoformat(), "start_date": ago(starts).isoformat()}
    return {"code": "201", **dates, **fields}, history


SIGNING = key(published=300)


@pytest.fixture
def stages_of():
    """The statuses of the keys of a domain, by selector: the same after those of one alike."""

    def stages_of(**keys):
        def domain(name):
            registrations = [
                Registration(name, selector, **fields) for selector, (fields, _) in keys.items()
            ]
            histories = (history for _, history in keys.values())
            return DomainKeys(name, dict(zip(registrations, histories, strict=True)))

        alike = {}
        [*keys_of(domain("example.net"), POLICIES, NOW, alike)]
        stages = [*keys_of(domain("example.com"), POLICIES, NOW)]
        assert [*keys_of(domain("example.com"), POLICIES, NOW, alike)] == stages
        return {key.selector: key for key in stages}

    return stages_of


@pytest.mark.parametrize("offset", ["+00:00", "-12:00"])
def test_the_first_of_all_times_is_as_good_as_any(stages_of, offset):
    first = f"0001-01-01T00:00:00{offset}"
    status = stages_of(s1=key(regist_date=first, start_date=first, verdict="missing"))["s1"]
    assert (status.stage, status.action) == ("signing", NextAction.PUBLISH)
    assert status.due == datetime.fromisoformat(first)


@pytest.mark.parametrize(
    ("one", "stage", "since", "action", "due"),
    [
        (key(made=1, starts=-6, verdict=None), "registered", 1, NextAction.PUBLISH, -2.5),
        (key(made=1, starts=-6, published=0.5), "published", 0.5, NextAction.WAIT, -6),
        (SIGNING, "signing", 300, NextAction.REGISTER, 127),
        (key(made=10, starts=5, published=8), "signing", 5, NextAction.REGISTER, -163),
        (key(made=10, enabled=3, published=8), "signing", 3, NextAction.REGISTER, -163),
        (key(made=10, enabled=None, published=8), "signing", None, NextAction.REGISTER, -163),
        (key(made=10, verdict="missing"), "signing", 10, NextAction.PUBLISH, 10),
        (key(enable=False, disabled=20), "disabled", 20, NextAction.NONE, None),
        (key(enable=False), "disabled", None, NextAction.NONE, None),
        (key(code="409"), "taken", None, NextAction.NONE, None),
        (key(regist_date=None, start_date=None, published=3), "unknown", None,
         NextAction.DECIDE, None),
        (key(regist_date=None, start_date="soon"), "unknown", None, NextAction.PUBLISH, None),
    ],
)  # fmt: skip
def test_a_key_without_a_successor(stages_of, one, stage, since, action, due):
    status = stages_of(s1=one)["s1"]
    assert (status.stage, status.since, status.action) == (stage, ago(since), action)
    assert status.due == ago(due)


@pytest.mark.parametrize(
    ("new", "stage", "since", "action", "due"),
    [
        (key(made=1, starts=-6, verdict=None), "successor registered", 1, NextAction.WAIT, -6),
        (key(made=1, starts=-6, published=0.5), "successor published", 0.5, NextAction.WAIT, -6),
        (key(made=9, starts=2, verdict="missing"), "successor signing", 2, NextAction.WAIT, None),
        (key(made=90, starts=83, verdict="missing"), "successor signing", 83, NextAction.WAIT,
         None),
        (key(made=9, starts=2, published=8), "grace period", 2, NextAction.REMOVE, -12),
        (key(made=9, starts=2, published=1), "grace period", 1, NextAction.REMOVE, -13),
        (key(made=23, starts=16, published=22), "retired", 2, NextAction.REMOVE, 2),
        (key(made=23, starts=16, published=22, looked=3), "retired", 2, NextAction.REMOVE, 2),
    ],
)  # fmt: skip
def test_a_key_that_another_replaces(stages_of, new, stage, since, action, due):
    fields, history = new
    new = (fields, history._replace(replaces="old"))
    old = stages_of(old=SIGNING, new=new)["old"]
    assert (old.stage, old.since, old.action) == (stage, ago(since), action)
    assert old.due == ago(due)
    assert "its successor new start" in old.note


@pytest.mark.parametrize(
    ("began", "passed", "stage", "action", "due"),
    [
        (13, 1, "grace period", NextAction.REMOVE, -1),
        (16, 5, "still signing", NextAction.WAIT, -5),
        (22, 5, "still signing", NextAction.DECIDE, 1),
        (22, 6, "retired", NextAction.REMOVE, 8),
    ],
)
def test_a_key_with_which_mail_passes_is_not_removed(stages_of, began, passed, stage, action, due):
    new, seen = key(made=30, starts=began, published=29, replaces="old"), ago(passed).date()
    old = (SIGNING[0], SIGNING[1]._replace(passed_on=seen))
    keys = stages_of(old=old, new=(new[0], new[1]._replace(passed_on=ago(1).date())))
    assert (keys["old"].stage, keys["old"].action) == (stage, action)
    assert keys["old"].due == ago(due)
    assert keys["old"].needs_attention == (action is NextAction.DECIDE)
    assert (keys["old"].dates.removable_at is None) == (stage == "still signing")


@pytest.mark.parametrize(
    ("one", "urgency"),
    [(key(made=3, starts=-4, verdict=None), ""),
     (key(made=3.5, starts=-3.5, verdict=None), "soon"),
     (key(made=3.5, starts=-3.5, published=0), ""),
     (key(made=7, starts=0, verdict="missing"), "signing"), (key(verdict="differs"), ""),
     (key(verdict="missing", enable=False), ""), (key(verdict="missing", code="409"), "")],
)  # fmt: skip
def test_it_is_urgent_to_publish_a_key_that_signs_or_after_half_of_the_lead(
    stages_of, one, urgency
):
    assert stages_of(s1=one)["s1"].urgency == urgency


def test_a_successor_whose_request_got_no_answer_is_shown():
    sent_at = NOW.isoformat()
    intents = [Intent("example.com", "s2", sent_at), Intent("example.com", None, sent_at)]
    domain = DomainKeys("example.com", {}, intents, {key_of("example.com", "s2"): "s1"})
    stages = {key.selector: key for key in keys_of(domain, POLICIES, NOW)}
    for selector, what in (("s2", "`dkimctl rotate run` asks again"), (None, "register the file")):
        one = stages[selector]
        assert (one.stage, one.action) == (KeyStage.UNANSWERED, NextAction.REGISTER_AGAIN)
        assert one.since == one.due == NOW
        assert what in one.note
        assert one.needs_attention


def test_what_a_key_waits_for_in_a_freeze_names_its_own_domain():
    freeze = ((NOW - DAY, NOW + 60 * DAY),)
    policies, alike = Policies([RotationSettings(freeze=freeze)]), {}
    for name in ("example.net", "example.com"):
        fields, history = key(made=174, published=174)
        domain = DomainKeys(name, {Registration(name, "s1", **fields): history})
        [found] = keys_of(domain, policies, NOW, alike)
        assert (found.action, name in found.note) == (NextAction.DECIDE, True)
