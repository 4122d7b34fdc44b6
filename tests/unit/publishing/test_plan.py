from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from dkimctl.errors import ServiceError
from dkimctl.publishing.plan import (
    Action,
    NameState,
    apply_plan,
    decide,
    find_target_zones,
    make_plan,
)
from dns_targets import FakeTarget, published

SPF = "v=spf1 -all"


VALUES = {
    "another key": lambda value, other: (other,),
    "truncated": lambda value, other: (value[:250],),
    "revoked": lambda value, other: ("v=DKIM1; p=",),
    "testing": lambda value, other: (f"{value}; t=y",),
    "in quotes": lambda value, other: (f'"{value}"',),
    "none": lambda value, other: (),
    "itself": lambda value, other: (value,),
    "SPF": lambda value, other: (SPF,),
    "empty": lambda value, other: ("",),
    "no key": lambda value, other: ("verification=1; p=x; v=other",),
    "itself and SPF": lambda value, other: (value, SPF),
}
WANTED = {  # what to do to publish, and to remove
    "another key": ("replace", "blocked"), "truncated": ("replace", "remove"),
    "revoked": ("replace", "remove"), "testing": ("replace", "remove"),
    "in quotes": ("replace", "blocked"), "none": ("create", "keep"), "itself": ("keep", "remove"),
    "SPF": ("blocked", "blocked"), "empty": ("blocked", "blocked"),
    "no key": ("blocked", "blocked"), "itself and SPF": ("blocked", "blocked"),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_what_to_do_at_a_name(key_records, case):
    value = key_records[2048]
    state = NameState(VALUES[case](value, key_records[1024]), 60)
    publish, reason = decide(value, state, remove=False, replace_foreign=False)
    remove, why = decide(value, state, remove=True, replace_foreign=False)
    assert (publish, remove) == WANTED[case]
    assert ("--replace" in reason, "retired key" in why) == (
        publish is Action.BLOCKED, remove is Action.BLOCKED,
    )  # fmt: skip
    if publish is Action.BLOCKED:
        assert decide(value, state, remove=False, replace_foreign=True) == (Action.REPLACE, "")


@pytest.mark.parametrize("remove", [True, False])
def test_an_alias_and_a_delegation_stand_in_the_way_always(key_records, remove):
    for state, text in (
        (NameState(alias="x\x1b[2J.example.net"), r"there is a CNAME, to x\x1b[2J.example.net"),
        (NameState(delegated="mail.example.com"), "the zone delegates mail.example.com to other"),
    ):
        action, reason = decide(key_records[2048], state, remove=remove, replace_foreign=True)
        assert action is Action.BLOCKED
        assert text in reason


def plan_of(registrations, targets, **options):
    """A plan that needs no look at DNS."""
    return make_plan(registrations, targets, pytest.fail, pytest.fail, **options)


def _applied(plan, **options):
    applied = []
    apply_plan(plan, applied.append, MagicMock(), pytest.fail, **options)
    return applied


def test_two_registrations_of_the_same_name_are_blocked(make_registration):
    one = make_registration("b._domainkey.example.com", "a")
    other = make_registration("example.com", "A._domainkey.b")
    plan = plan_of([one, other, make_registration()], [FakeTarget("example.com")])
    assert [change.action for change in plan] == ["blocked", "blocked", "create"]
    assert "same name" in plan[0].reason


def test_a_zone_that_cannot_be_read_fails_alone(make_registration):
    good, bad = make_registration("good.test"), make_registration("bad.test")
    failure = ServiceError("no answer")
    target = FakeTarget("good.test", "bad.test", errors={"bad.test": failure})
    plan = plan_of([bad, good], [target])
    failed, planned = plan
    assert (failed.zone, failed.error, failed.registration) == ("bad.test", failure, bad)
    assert (failed.action, failed.reason) == (Action.UNREAD, "no answer")
    assert (planned.zone, planned.error) == ("good.test", None)
    assert [one.error for one in _applied(plan)] == [None]


NEW = "s1._domainkey.example.com"


@pytest.mark.parametrize(
    ("options", "action", "text"),
    [
        ({"shadowed": {NEW: ("x. 60 IN A 192.0.2.1",)}}, "blocked", "answers for x; first"),
        ({"shadowed": {NEW: None}}, "unread", "does not say"),
        ({"errors": {"find_shadowed": ServiceError("no answer")}}, "unread", "no answer"),
    ],
)
def test_nothing_is_created_that_ends_what_a_wildcard_answers_or_may(
    make_registration, options, action, text
):
    registration = make_registration()
    target = FakeTarget("example.com", **options)
    (change,) = plan_of([registration], [target])
    assert change.action == action
    assert text in change.reason
    assert change.error is None or "--allow-wildcard-shadowing" in change.error.hint
    (allowed,) = plan_of([registration], [target], allow_shadowing=True)
    assert allowed.action == "create"
    kept = FakeTarget("example.com", names=published(registration), **options)
    assert [change.action for change in plan_of([registration], [kept])] == ["keep"]
    assert ("find_shadowed", "example.com") not in kept.calls


def test_a_defect_of_a_target_is_not_silent(make_registration):
    def fail(change):
        raise ZeroDivisionError

    plan = plan_of([make_registration()], [FakeTarget("example.com", before_change=fail)])
    with pytest.raises(ZeroDivisionError):
        _applied(plan)


NAME = "s1._domainkey.mail.example.com"


def _target(label, zones, *listed):
    return FakeTarget(*zones, label=label, given=listed)


PARENT = ("parent", ["example.com"], "example.com")
CHILD = ("child", ["mail.example.com"], "mail.example.com")
ALL = ("all", ["example.com"])
GLOB = ("glob", ["example.com"], "*.org", "example.*")


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # The longest name wins, whatever the order; and over globs and all.
        ([PARENT, CHILD], ("child", "mail.example.com")),
        ([("all", ["mail.example.com"]), CHILD, PARENT], ("child", "mail.example.com")),
        ([ALL, GLOB, ("name", ["example.com"], "Example.COM")], ("name", "example.com")),
        # Globs and all go by the order of the file.
        ([GLOB, ALL], ("glob", "example.com")),
        ([ALL, GLOB], ("all", "example.com")),
        # A glob is for the zone, not for the name.
        ([("glob", ["example.com"], "*.example.com")], None),
        ([("glob", ["mail.example.com"], "*.example.com")], ("glob", "mail.example.com")),
        # A zone below the named one is not meant by it.
        ([("parent", ["example.com", "mail.example.com"], "example.com")], None),
        (
            [("x", ["mail.example.com"], "example.com"), ("all", ["mail.example.com"])],
            ("all", "mail.example.com"),
        ),
    ],
)
def test_the_target_and_zone_of_a_name(targets, expected):
    place = find_target_zones([NAME], [_target(*target) for target in targets])[NAME]
    assert (place and (place.target.label, place.zone)) == expected


def test_where_a_named_target_fails_no_other_is_tried():
    others = [_target("all", ["example.com"])]
    wrong = _target("ns.test", ["example.org"], "example.com")
    place = find_target_zones([NAME], [wrong, *others])[NAME]
    assert place.error.message == "ns.test has no zone example.com"
    failure = ServiceError("no answer")
    silent = FakeTarget(errors={"find_zones": failure}, given=("example.*",))
    assert find_target_zones([NAME], [silent, *others])[NAME].error is failure
