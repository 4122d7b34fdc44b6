from __future__ import annotations

import pytest

from dkimctl.errors import ServiceError
from dkimctl.publishing.plan import ConfiguredTarget, find_target_zones
from dns_targets import FakeTarget

NAME = "s1._domainkey.mail.example.com"


def _place(name, *targets):
    target_zone = find_target_zones([name], targets)[name]
    return None if target_zone is None else (target_zone.target.label, target_zone.zone)


def _target(label, zones, *listed):
    return ConfiguredTarget(tuple(listed), FakeTarget(*zones, label=label))


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
    silent = ConfiguredTarget(listed, FakeTarget(errors={"find_zones": failure}))
    everything = _target("all", ["example.com"])
    assert find_target_zones([NAME], [silent, everything])[NAME].error is failure


def test_a_target_is_asked_once_for_a_name_and_only_for_those_that_it_may_have():
    target = FakeTarget("example.com")
    rules = [
        ConfiguredTarget(("example.com", "*.net"), target),
        ConfiguredTarget(("example.org",), FakeTarget("example.org")),
    ]
    names = [NAME, "s1._domainkey.example.org", "s1._domainkey.a.example.net"]
    find_target_zones(names, rules)
    assert target.asked == [[NAME, "s1._domainkey.a.example.net"]]
