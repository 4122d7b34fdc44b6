from __future__ import annotations

from dkimctl.errors import NegativeAnswer, ServiceError
from dkimctl.publishing.plan import Access, ConfiguredTarget
from dkimctl.publishing.targets import check_access
from dns_targets import FakeTarget


def _check(registrations, *targets, progress=lambda _: None):
    configured = [ConfiguredTarget((), target) for target in targets]
    return check_access(registrations, configured, progress=progress)


def test_each_zone_is_tried_with_its_names(make_registration):
    registrations = list(map(make_registration, ("a.test", "mail.a.test", "b.test", "c.org")))
    target = FakeTarget("a.test", "b.test", access=Access(True, None, "only a change tells"))
    told = []
    report = _check(registrations, target, progress=told.append)
    assert [(one.zone, one.names, one.access.writable) for one in report.zones] == [
        ("a.test", 2, None), ("b.test", 1, None),
    ]  # fmt: skip
    assert report.uncovered == registrations[3:]
    assert told[-1] == 3
    assert target.names == {}


def test_a_zone_that_cannot_be_tried_has_the_reason(make_registration):
    failure = ServiceError("no answer")
    for method in ("find_zones", "check_access"):
        (zone,) = _check([make_registration("a.test")], FakeTarget("a.test", errors={
            method: failure,
        })).zones  # fmt: skip
        assert (zone.error, zone.access) == (failure, Access(False, None, "no answer"))


def test_zones_that_are_named_are_tried_without_registrations(make_registration):
    target, idle = FakeTarget("a.test", "b.test", "c.test"), FakeTarget("d.test", label="idle")
    configured = [
        ConfiguredTarget(("a.test", "b.test", "*.test", "missing.test"), target),
        ConfiguredTarget(("d.*",), idle),
    ]
    report = check_access([make_registration("a.test")], configured, tries_named=True)
    assert [(one.zone, one.names, one.access.readable) for one in report.zones] == [
        ("a.test", 1, True), ("b.test", 0, True), ("missing.test", 0, False), ("", 0, None),
    ]  # fmt: skip
    assert isinstance(report.zones[2].error, NegativeAnswer)
    tried = sorted(zone for method, zone in target.calls if method == "check_access")
    assert tried == ["a.test", "b.test"]  # at the same time, in either order
