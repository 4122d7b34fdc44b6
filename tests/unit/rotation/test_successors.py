"""Which domains are due, and the specs of their successors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from dkimctl.errors import UsageError
from dkimctl.ledger.intents import Intent
from dkimctl.ledger.ledger import DomainKeys
from dkimctl.models import DomainSpec, KeyHistory, key_of
from dkimctl.names import Selection, parse_domain
from dkimctl.rotation.successors import (
    Rotation,
    RotationPolicy,
    plan_rotation,
    spec_of,
    start_date,
)
from dkimctl.settings.rotation import RotationSettings

NOW = datetime(2026, 11, 21, 15, 4, 5, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RotationPolicy(180 * DAY, "2026-11-24T15:05+00:00", 2048, lambda domain: "s20261121")
OLD, YOUNG = "2026-05-25T15:04:05+00:00", "2026-05-25T15:04:06+00:00"  # 180 days, less a second
TO_COME = "2026-11-22T00:05+09:00"
EXAMPLE = "example.com"


@pytest.fixture
def one(make_registration):
    """Make a registration of example.com that is due, unless `fields` say otherwise."""

    def make(selector="s1", sign_domain=EXAMPLE, **fields):
        return make_registration(sign_domain, selector, **{"regist_date": OLD} | fields)

    return make


def plan(registrations, unanswered=(), policy=POLICY) -> Rotation:
    """The rotation of a ledger that has these registrations and requests without an answer."""
    domains = {key.sign_domain: ({}, []) for key in unanswered}
    domains |= {one.key.sign_domain: ({}, []) for one in registrations}
    for one in registrations:
        domains[one.key.sign_domain][0][one] = KeyHistory()
    for key in unanswered:
        domains[key.sign_domain][1].append(Intent(*key, ""))
    ledger = SimpleNamespace(
        domains=lambda: (DomainKeys(name, *known) for name, known in sorted(domains.items()))
    )
    every = Selection()
    return plan_rotation(ledger, every, policy, NOW) or Rotation([], [], [])


def due(*registrations, unanswered=(), policy=POLICY) -> list[DomainSpec]:
    rotation = plan(registrations, unanswered, policy)
    assert rotation.undated == []
    return rotation.successors


def test_successor_states_all_its_fields(one):
    expected = DomainSpec(EXAMPLE, "s20261121", 2048, POLICY.start_date, 0, True, "s1")
    assert due(one(key_len=1024, start_date="2026-01-01T00:00+00:00")) == [expected]


@pytest.mark.parametrize(
    ("dates", "count"),
    [
        ([{"regist_date": OLD}], 1),
        ([{"regist_date": YOUNG}], 0),
        ([{"regist_date": OLD}, {"regist_date": YOUNG}], 0),
        ([{"regist_date": "2026-05-26T00:04:05+09:00"}], 1),  # the same instant as OLD
        # The age of a key counts from its registration, or else from its start.
        ([{"regist_date": OLD, "start_date": "2026-10-01T00:00+00:00"}], 1),
        ([{"regist_date": None, "start_date": "2026-10-01T00:00+00:00"}], 0),
        ([{"regist_date": None, "start_date": "2026-01-01T00:00+00:00"}], 1),
        # A domain with a successor is not due.
        ([{"regist_date": OLD}, {"regist_date": OLD, "start_date": TO_COME}], 0),
        ([{"regist_date": OLD, "start_date": TO_COME}], 0),
        # Keys that do not sign do not count.
        ([{"regist_date": OLD, "enable": False}], 0),
        ([{"regist_date": OLD, "enable": True}], 1),
        ([{"regist_date": OLD}, {"regist_date": YOUNG, "enable": False}], 1),
        ([{"regist_date": OLD}, {"start_date": TO_COME, "enable": False}], 1),
        ([{"code": "409", "record": None}], 0),
        ([{"regist_date": OLD}, {"code": "409", "record": None, "regist_date": YOUNG}], 1),
        # A key without dates does not count beside one with dates.
        ([{"regist_date": OLD}, {"regist_date": None}], 1),
        ([{"regist_date": YOUNG}, {"regist_date": None}], 0),
        ([], 0),
    ],
)
def test_newest_key_decides_whether_a_domain_is_due(one, dates, count):
    registrations = [one(f"s{number}", **fields) for number, fields in enumerate(dates, 1)]
    assert len(due(*registrations)) == count


@pytest.mark.parametrize(
    ("dates", "replaced"),
    [([OLD, OLD], ["s1", "s2"]), ([OLD, YOUNG], ["s1"]), ([YOUNG, OLD], ["s2"]),
     ([YOUNG, YOUNG], [])],
)  # fmt: skip
def test_keys_that_differ_in_default_are_rotated_each_by_itself(one, dates, replaced):
    first, second = dates
    specs = due(one("s1", default=0, regist_date=first), one("s2", default=1, regist_date=second))
    assert [spec.replaces for spec in specs] == replaced
    assert len({spec.selector for spec in specs}) == len(specs)
    assert all(spec.default == int(spec.replaces == "s2") for spec in specs)


@pytest.mark.parametrize(
    "text", [None, "", "2026-05-25", "2026-05-25T15:04:05", "x", "0001-01-01T00:00+14:00"]
)
def test_domain_without_any_date_is_undated_and_left_out(one, text):
    undated = one(regist_date=text, start_date=text)
    rotation = plan([undated, one(sign_domain="example.net")])
    assert rotation.undated == [EXAMPLE]
    assert [spec.sign_domain for spec in rotation.successors] == ["example.net"]


@pytest.mark.parametrize(
    ("used", "unanswered", "selector"),
    [
        (["s1"], [], "s20261121"),
        (["S20261121"], [], "s20261121-2"),
        (["s20261121", "s20261121-3"], [], "s20261121-2"),
        (["s20261121", "s20261121-2", "s20261121-3"], [], "s20261121-4"),
        (["s1"], [key_of("example.com", "s20261121")], "s20261121-2"),
        (
            ["s1"],
            [key_of("EXAMPLE.com", "S20261121"), key_of("example.com", "s20261121-2")],
            "s20261121-3",
        ),
        (["s1"], [key_of("example.net", "s20261121"), key_of("example.com", None)], "s20261121"),
    ],
)
def test_selector_is_new_to_the_domain(one, used, unanswered, selector):
    [spec] = due(*map(one, used), unanswered=unanswered)
    assert spec.selector == selector


LONG = parse_domain(".".join(["a" * 60] * 3 + ["b" * 50]))  # 233 octets


@pytest.mark.parametrize(
    ("domain", "selector", "used"),
    [(LONG, "s20261121", []), (EXAMPLE, "x" * 62, ["x" * 62]), (LONG, "s" * 8, ["s" * 8])],
)
def test_domains_whose_names_get_too_long_are_an_error(one, domain, selector, used):
    policy = POLICY._replace(selector_for=lambda domain: selector)
    registrations = [one("s1", domain), *(one(name, domain) for name in used)]
    with pytest.raises(UsageError, match=domain) as caught:
        due(*registrations, policy=policy)
    assert "--selector" in caught.value.message
    assert "shorter template" in caught.value.hint


@pytest.mark.parametrize(("selector", "replaces"), [("k_1", "k_1"), ("a b", None), (None, None)])
def test_only_a_selector_that_dns_can_have_is_named(one, selector, replaces):
    [spec] = due(one()._replace(selector=selector))
    assert spec.replaces == replaces


@pytest.mark.parametrize(
    ("now", "start"),
    [
        (NOW, "2026-11-24T15:05+00:00"),
        (NOW.replace(second=0), "2026-11-24T15:04+00:00"),
        (NOW.replace(second=0, microsecond=1), "2026-11-24T15:05+00:00"),
        (NOW.astimezone(timezone(9 * DAY / 24)), "2026-11-24T15:05+00:00"),
    ],
)
def test_start_is_a_full_minute_and_never_too_early(now, start):
    assert start_date(now, 3 * DAY) == start


@pytest.mark.parametrize(("key_len", "expected"), [(None, 2048), (1024, 2048), (4096, 4096)])
def test_a_successor_has_no_shorter_key(one, key_len, expected):
    assert spec_of(one(key_len=key_len), "new", RotationSettings(), NOW).key_len == expected
