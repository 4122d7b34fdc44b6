from __future__ import annotations

import threading

import pytest

from dkimctl.errors import ServiceError
from dkimctl.publishing.plan import Action, ConfiguredTarget, NameState, apply_plan, make_plan
from dns_targets import FakeTarget, published


def _configured(target, *zones):
    return [ConfiguredTarget(zones, target)]


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
    plan = make_plan([kept, new, old], _configured(target))
    assert [zone.zone for zone in plan.zones] == ["a.test", "b.test", "c.test"]
    assert plan.uncovered == []
    create, replace, keep = plan.changes
    assert (create.action, create.registration, create.ttl) == (Action.CREATE, new, 300)
    assert (replace.action, replace.before) == (Action.REPLACE, before)
    assert replace.value == old.record.value
    assert keep.action is Action.KEEP  # another TTL is no change
    assert [zone.to_apply for zone in plan.zones] == [[create], [replace], []]


def test_applied_is_published_and_the_second_plan_is_empty(registrations):
    target = FakeTarget("example.com")
    plan = make_plan(registrations, _configured(target))
    assert [one.error for one in _applied(plan)] == [None] * 20
    assert target.names == published(*registrations)
    again = make_plan(registrations, _configured(target))
    assert {change.action for change in again.changes} == {Action.KEEP}
    assert _applied(again) == []
    assert target.calls.count(("apply", "example.com")) == 1


def test_two_registrations_of_the_same_name_are_blocked(make_registration):
    one = make_registration("b._domainkey.example.com", "a")
    other = make_registration("example.com", "A._domainkey.b")
    plan = make_plan([one, other, make_registration()], _configured(FakeTarget("example.com")))
    assert [change.action for change in plan.changes] == ["blocked", "blocked", "create"]
    assert "same name" in plan.changes[0].reason


def test_a_zone_that_cannot_be_read_fails_alone(make_registration):
    good, bad = make_registration("good.test"), make_registration("bad.test")
    failure = ServiceError("no answer")
    target = FakeTarget("good.test", "bad.test", errors={"bad.test": failure})
    plan = make_plan([bad, good], _configured(target))
    failed, planned = plan.zones
    assert (failed.zone, failed.error, failed.unread) == ("bad.test", failure, [bad])
    assert failed.changes == []
    assert (planned.zone, planned.error) == ("good.test", None)
    assert [one.error for one in _applied(plan)] == [None]


def test_zones_are_changed_at_the_same_time_and_one_change_in_flight_in_each(make_registration):
    zones = [f"d{number}.test" for number in range(8)]
    all_at_once = threading.Barrier(8, timeout=10)
    target = FakeTarget(*zones, before_change=lambda change: all_at_once.wait())
    registrations = [
        make_registration(zone, selector) for selector in ("s1", "s2") for zone in zones
    ]
    assert len(_applied(make_plan(registrations, _configured(target)))) == 16


def test_stopped_it_tells_all_that_was_made_and_begins_nothing_more(make_registration):
    registrations = [make_registration("example.com", f"s{number}") for number in range(1200)]
    stopped = threading.Event()
    target = FakeTarget("example.com", before_change=lambda change: stopped.set())
    plan = make_plan(registrations, _configured(target))
    applied = _applied(plan, is_stopped=stopped.is_set)
    assert 0 < len(applied) < len(registrations)
    assert [one.change.record.fqdn for one in applied] == target.applied
    again = make_plan(registrations, _configured(target))
    assert len(_applied(again)) == len(registrations) - len(applied)


def test_a_defect_of_a_target_ends_the_run(make_registration):
    def fail(change):
        raise ZeroDivisionError

    target = FakeTarget("example.com", before_change=fail)
    plan = make_plan([make_registration()], _configured(target))
    with pytest.raises(ZeroDivisionError):
        _applied(plan)
