from __future__ import annotations

import threading

import pytest

from dkimctl.errors import ServiceError
from dkimctl.publishing.plan import (
    Action,
    NameState,
    apply_plan,
    decide,
    find_target_zones,
    is_key_record,
    make_plan,
)
from dns_targets import FakeTarget, published

SPF = "v=spf1 -all"


@pytest.fixture
def value(key_records):
    return key_records[2048]


def _publish(value, *values, replace_foreign=False, **state):
    state = NameState(values, 60 if values else None, **state)
    return decide(value, state, remove=False, replace_foreign=replace_foreign)


def _remove(value, *values, replace_foreign=False, **state):
    state = NameState(values, 60 if values else None, **state)
    return decide(value, state, remove=True, replace_foreign=replace_foreign)


def test_what_is_missing_is_created(value):
    assert _publish(value) == (Action.CREATE, "")


@pytest.mark.parametrize("other", ["another key", "truncated", "revoked", "testing", "in quotes"])
def test_another_key_record_is_replaced(value, key_records, other):
    values = {
        "another key": key_records[1024],
        "truncated": value[:250],
        "revoked": "v=DKIM1; p=",
        "testing": f"{value}; t=y",
        "in quotes": f'"{value}"',
    }
    assert _publish(value, values[other]) == (Action.REPLACE, "")


@pytest.mark.parametrize("foreign", [SPF, "", "hello", "verification=1; p=x; v=other"])
def test_other_text_is_replaced_only_if_asked_for(value, foreign):
    action, reason = _publish(value, foreign)
    assert action is Action.BLOCKED
    assert "--replace" in reason
    assert _publish(value, foreign, value)[0] is Action.BLOCKED
    assert _publish(value, foreign, replace_foreign=True) == (Action.REPLACE, "")


@pytest.mark.parametrize("decide_it", [_publish, _remove])
def test_an_alias_and_a_delegation_stand_in_the_way_always(value, decide_it):
    action, reason = decide_it(value, alias="x\x1b[2J.example.net", replace_foreign=True)
    assert (action, reason) == (Action.BLOCKED, r"there is a CNAME, to x\x1b[2J.example.net")
    action, reason = decide_it(value, delegated="mail.example.com", replace_foreign=True)
    assert action is Action.BLOCKED
    assert "delegates mail.example.com" in reason


def test_the_record_of_a_retired_key_is_removed(value):
    assert _remove(value, value) == (Action.REMOVE, "")
    assert _remove(value, "v=DKIM1; p=") == (Action.REMOVE, "")
    assert _remove(value, value[:250]) == (Action.REMOVE, "")


def test_what_is_not_of_the_retired_key_is_not_removed(value, key_records):
    for other in (SPF, key_records[1024], "", "hello"):
        action, reason = _remove(value, other)
        assert action is Action.BLOCKED
        assert "retired key" in reason
    assert _remove(value, value, SPF)[0] is Action.BLOCKED


def test_key_records(value):
    assert is_key_record(value)
    assert is_key_record("p=MIIB")  # v= is optional (RFC 6376 section 3.6.1)
    assert is_key_record(r"\"v=DKIM1\; k=rsa\; p=MIIB")
    assert not is_key_record(SPF)
    assert not is_key_record("p")
    assert not is_key_record("v=DKIM10; p=x")


def _applied(plan, **options):
    applied = []
    apply_plan(plan, applied.append, **options)
    return applied


@pytest.fixture
def registrations(make_registration):
    return [make_registration(f"d{number}.example.com") for number in range(20)]


def test_a_plan_tells_the_action_and_what_is_there(make_registration, key_records):
    new, old, kept = (make_registration(name, "s1") for name in ("a.test", "b.test", "c.test"))
    before = NameState((key_records[1024],), 60)
    names = {"s1._domainkey.b.test": before, **published(kept, ttl=1)}
    target = FakeTarget("a.test", "b.test", "c.test", names=names, ttl=300)
    plan = make_plan([kept, new, old], [target])
    assert [change.zone for change in plan] == ["a.test", "b.test", "c.test"]
    create, replace, keep = plan
    assert (create.action, create.registration, create.ttl) == (Action.CREATE, new, 300)
    assert (replace.action, replace.before) == (Action.REPLACE, before)
    assert replace.value == old.record.value
    assert keep.action is Action.KEEP  # another TTL is no change
    assert [one.change for one in _applied(plan)] == [create, replace]


def test_applied_is_published_and_the_second_plan_is_empty(registrations):
    target = FakeTarget("example.com")
    plan = make_plan(registrations, [target])
    assert [one.error for one in _applied(plan)] == [None] * 20
    assert target.names == published(*registrations)
    again = make_plan(registrations, [target])
    assert {change.action for change in again} == {Action.KEEP}
    assert _applied(again) == []
    assert target.calls.count(("apply", "example.com")) == 1


def test_two_registrations_of_the_same_name_are_blocked(make_registration):
    one = make_registration("b._domainkey.example.com", "a")
    other = make_registration("example.com", "A._domainkey.b")
    plan = make_plan([one, other, make_registration()], [FakeTarget("example.com")])
    assert [change.action for change in plan] == ["blocked", "blocked", "create"]
    assert "same name" in plan[0].reason


def test_a_zone_that_cannot_be_read_fails_alone(make_registration):
    good, bad = make_registration("good.test"), make_registration("bad.test")
    failure = ServiceError("no answer")
    target = FakeTarget("good.test", "bad.test", errors={"bad.test": failure})
    plan = make_plan([bad, good], [target])
    failed, planned = plan
    assert (failed.zone, failed.error, failed.registration) == ("bad.test", failure, bad)
    assert (failed.action, failed.reason) == (Action.UNREAD, "no answer")
    assert (planned.zone, planned.error) == ("good.test", None)
    assert [one.error for one in _applied(plan)] == [None]


def test_zones_are_changed_at_the_same_time_and_one_change_in_flight_in_each(make_registration):
    zones = [f"d{number}.test" for number in range(8)]
    all_at_once = threading.Barrier(8, timeout=10)
    target = FakeTarget(*zones, before_change=lambda change: all_at_once.wait())
    registrations = [
        make_registration(zone, selector) for selector in ("s1", "s2") for zone in zones
    ]
    assert len(_applied(make_plan(registrations, [target]))) == 16


def test_stopped_it_tells_all_that_was_made_and_begins_nothing_more(make_registration):
    registrations = [make_registration("example.com", f"s{number}") for number in range(1200)]
    stopped = threading.Event()
    target = FakeTarget("example.com", before_change=lambda change: stopped.set())
    plan = make_plan(registrations, [target])
    applied = _applied(plan, is_stopped=stopped.is_set)
    assert 0 < len(applied) < len(registrations)
    assert [one.change.fqdn for one in applied] == target.applied
    again = make_plan(registrations, [target])
    assert len(_applied(again)) == len(registrations) - len(applied)


def test_a_defect_of_a_target_ends_the_run(make_registration):
    def fail(change):
        raise ZeroDivisionError

    target = FakeTarget("example.com", before_change=fail)
    plan = make_plan([make_registration()], [target])
    with pytest.raises(ZeroDivisionError):
        _applied(plan)


NAME = "s1._domainkey.mail.example.com"


def _place(name, *targets):
    target_zone = find_target_zones([name], targets)[name]
    return None if target_zone is None else (target_zone.target.label, target_zone.zone)


def _target(label, zones, *listed):
    return FakeTarget(*zones, label=label, given=listed)


def test_the_longest_zone_name_wins_whatever_the_order():
    parent = _target("parent", ["example.com"], "example.com")
    child = _target("child", ["mail.example.com"], "mail.example.com")
    everything = _target("all", ["example.com", "mail.example.com"])
    for targets in ([parent, child], [child, parent], [everything, parent, child]):
        assert _place(NAME, *targets) == ("child", "mail.example.com")


def test_a_zone_name_wins_over_globs_and_all():
    by_glob = _target("glob", ["example.com"], "example.*")
    everything = _target("all", ["example.com"])
    by_name = _target("name", ["example.com"], "Example.COM")
    assert _place(NAME, everything, by_glob, by_name) == ("name", "example.com")


def test_globs_and_all_go_by_the_order_of_the_file():
    by_glob = _target("glob", ["example.com"], "*.org", "example.*")
    everything = _target("all", ["example.com"])
    assert _place(NAME, by_glob, everything) == ("glob", "example.com")
    assert _place(NAME, everything, by_glob) == ("all", "example.com")


def test_a_glob_is_for_the_zone_and_not_for_the_name():
    by_glob = _target("glob", ["example.com"], "*.example.com")
    assert _place(NAME, by_glob) is None  # the zone of the target is example.com
    below = _target("glob", ["mail.example.com"], "*.example.com")
    assert _place(NAME, below) == ("glob", "mail.example.com")


def test_a_zone_below_the_named_one_is_not_meant_by_it():
    parent = _target("parent", ["example.com", "mail.example.com"], "example.com")
    assert _place(NAME, parent) is None
    everything = _target("all", ["mail.example.com"])
    assert _place(NAME, parent, everything) == ("all", "mail.example.com")


def test_a_named_zone_that_the_target_does_not_have_is_an_error():
    wrong = _target("ns.test", ["example.org"], "example.com")
    everything = _target("all", ["example.com"])
    target_zone = find_target_zones([NAME], [wrong, everything])[NAME]
    assert (target_zone.zone, target_zone.error.message) == (
        "example.com",
        "ns.test has no zone example.com",
    )
    assert "config" in target_zone.error.hint


@pytest.mark.parametrize("listed", [(), ("example.*",), ("example.com",)])
def test_without_an_answer_no_other_target_is_tried(listed):
    failure = ServiceError("no answer")
    silent = FakeTarget(errors={"find_zones": failure}, given=listed)
    everything = _target("all", ["example.com"])
    assert find_target_zones([NAME], [silent, everything])[NAME].error is failure


def test_a_target_is_asked_once_for_a_name_and_only_for_those_that_it_may_have():
    target = FakeTarget("example.com", given=["example.com", "*.net"])
    rules = [target, FakeTarget("example.org", given=["example.org"])]
    names = [NAME, "s1._domainkey.example.org", "s1._domainkey.a.example.net"]
    find_target_zones(names, rules)
    assert target.asked == [[NAME, "s1._domainkey.a.example.net"]]
