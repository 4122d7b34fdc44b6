"""Rounds of checks: of which records, how often, how long; and many checks in one round."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.check import Checker, CheckPolicy, Looks, check_publication, repeat_checks
from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.models import Registration, key_of

PUBLISHED, MISSING = Verdict.PUBLISHED, Verdict.MISSING
NAME = "s1._domainkey.example.com"


class World:
    """DNS and time. Each record is published at its time, in seconds; a round takes `slowness`."""

    def __init__(self, *published_at: float, slowness: float = 0.0) -> None:
        self.published_at = published_at
        self.slowness = slowness
        self.now = 0.0
        self.rounds: list[tuple[float, list[str]]] = []  # (when, selectors)
        self.pauses: list[float] = []
        self.verdicts: list[list[Verdict]] = []

    def check(self, registrations):
        self.rounds.append((self.now, [one.selector for one in registrations]))
        for registration in registrations:
            at = self.published_at[int(registration.selector)]
            verdict = PUBLISHED if at <= self.now else MISSING
            yield Check("example.com", registration.selector, "", None, None, Finding(verdict))
        self.now += self.slowness

    def pause(self, seconds, checks):
        self.pauses.append(seconds)
        self.verdicts.append([check.finding.verdict for check in checks])
        self.now += seconds

    def repeat(self, seconds: float) -> list[Verdict]:
        """The last verdicts."""
        registrations = [
            Registration("example.com", str(number)) for number in range(len(self.published_at))
        ]
        policy = CheckPolicy(seconds, timedelta(0), expect_absent=False)
        with mock.patch("dkimctl.dns.check.time.monotonic", side_effect=lambda: 500 + self.now):
            checks = repeat_checks(self.check, registrations, policy, self.pause)
        assert [check.selector for check in checks] == [one.selector for one in registrations]
        return [check.finding.verdict for check in checks]


NEVER = 1e9


def test_one_round_if_all_is_good():
    world = World(0, 0, 0)
    assert world.repeat(600) == [PUBLISHED] * 3
    assert world.rounds == [(0, ["0", "1", "2"])]
    assert world.pauses == []


def test_only_records_that_are_not_good_are_checked_again():
    world = World(0, 4, 3, 1)
    assert world.repeat(600) == [PUBLISHED] * 4
    assert world.rounds == [(0, ["0", "1", "2", "3"]), (2, ["1", "2", "3"]), (5, ["1", "2"])]
    assert world.verdicts == [
        [PUBLISHED, MISSING, MISSING, MISSING],
        [PUBLISHED, MISSING, MISSING, PUBLISHED],
    ]


def test_last_round_is_when_time_is_up():
    world = World(0, 10, NEVER)
    assert world.repeat(10) == [PUBLISHED, PUBLISHED, MISSING]
    assert [when for when, _ in world.rounds] == [0, 2, 5, 9.5, 10]
    assert world.pauses == [2, 3, 4.5, 0.5]


@given(
    st.lists(st.floats(0, 2000), max_size=5),
    st.floats(0, 1500),
    st.floats(0, 5),
)
def test_published_record_is_seen_within_one_interval(published_at, seconds, slowness):
    world = World(*published_at, slowness=slowness)
    verdicts = world.repeat(seconds)
    last_round = world.rounds[-1][0]
    assert verdicts == [PUBLISHED if at <= last_round else MISSING for at in published_at]
    assert sum(world.pauses) <= seconds + 1e-6
    assert last_round <= seconds + 1e-6
    if MISSING in verdicts:
        assert world.now >= seconds - 1e-6
    else:
        assert last_round <= max([0, *published_at]) + 60 + slowness


def test_checks_come_in_the_order_of_registrations(
    check, make_registration, fake_server, key_records
):
    domains = [f"d{number % 700}.example.com" for number in range(4500)]
    registrations = [
        make_registration(domain, f"s{number}") for number, domain in enumerate(domains)
    ]
    server = fake_server(answers={registrations[2000].record.fqdn: [key_records[2048]]})
    checks = check({"example.com": [server]}, *registrations)
    assert [check.fqdn for check in checks] == [one.record.fqdn for one in registrations]
    published = [check.selector for check in checks if check.finding.verdict is Verdict.PUBLISHED]
    assert published == ["s2000"]


def test_each_server_gets_its_questions_in_one_burst(make_registration, fake_server, fake_source):
    shared, other = fake_server("shared.test"), fake_server("other.test")
    source = fake_source({"example.com": [shared], "example.net": [shared, other]})
    registrations = [make_registration(f"example.{tld}") for tld in ("com", "net", "org")]
    with Checker(source) as checker:
        list(checker.check(registrations))
    net = "s1._domainkey.example.net"
    assert shared.prefetched == [[NAME, net]]
    assert other.prefetched == [[net]]


def test_an_unexpected_error_comes_as_it_is(make_registration, fake_server, fake_source):
    """In a group of exceptions, its name would be lost."""
    server = fake_server(answers={NAME: OSError("too many open files")})
    source = fake_source({"example.com": [server]})
    registrations = [make_registration(selector=f"s{number}") for number in range(1, 4)]
    with Checker(source) as checker, pytest.raises(OSError, match="too many open files"):
        list(checker.check(registrations))


def test_caches_are_emptied_before_checking_again(make_registration, fake_server, fake_source):
    source = fake_source({"example.com": [fake_server()]})
    with Checker(source) as checker:
        list(checker.check([make_registration()]))
        assert source.forgot == 0
        assert len(list(checker.check_again([make_registration()]))) == 1
        assert source.forgot == 1
        assert list(checker.check([])) == []


class Recorder:
    """A progress that keeps what it is told, and does not sleep."""

    def __init__(self, on_pause=lambda: None) -> None:
        self.checks: list[Check] = []
        self.pauses: list[list[Verdict]] = []
        self.on_pause = on_pause

    def checked(self, check: Check) -> None:
        self.checks.append(check)

    def pause(self, seconds: float, checks) -> None:
        self.pauses.append([check.finding.verdict for check in checks])
        self.on_pause()


@pytest.fixture
def run(fake_source):
    """Run check_publication at a server; gives what was emitted, the progress and the looks."""

    def run(server, *registrations, wait=0.0, expect_absent=False, progress=None, retired=()):
        emitted: list[Check] = []
        progress = progress or Recorder()
        looks = Looks()
        check_publication(
            registrations,
            fake_source({"example.com": [server]}),
            CheckPolicy(wait, timedelta(days=2), expect_absent),
            emitted.append,
            progress=progress,
            looks=looks,
            retired=dict(retired),
        )
        return emitted, progress, looks

    return run


def test_checks_are_pushed_in_order_with_their_urgency(
    run, make_registration, fake_server, key_records
):
    registrations = [
        make_registration(selector="s1", start_date="2020-01-01T00:00+00:00"),
        make_registration(selector="s2", start_date="2020-01-01T00:00+00:00"),
        make_registration(selector="s3", start_date="2999-01-01T00:00+00:00"),
        make_registration(
            selector="s4",
            start_date="2999-01-01T00:00+00:00",
            regist_date="2999-01-01T00:00:01+00:00",
        ),
    ]
    server = fake_server(answers={NAME: [key_records[2048]]})
    emitted, progress, looks = run(server, *registrations)
    assert [(check.selector, check.finding.verdict, check.urgency) for check in emitted] == [
        ("s1", PUBLISHED, Urgency.NONE),
        ("s2", MISSING, Urgency.SIGNING),
        ("s3", MISSING, Urgency.NONE),
        ("s4", MISSING, Urgency.SIGNING),
    ]
    assert sorted(check.selector for check in progress.checks) == ["s1", "s2", "s3", "s4"]
    assert looks.latest == {
        key_of("example.com", selector): PUBLISHED if selector == "s1" else MISSING
        for selector in ("s1", "s2", "s3", "s4")
    }


@pytest.mark.parametrize("wait", [0.0, 60.0])
def test_a_missing_record_of_a_retired_key_is_good(run, make_registration, fake_server, wait):
    start = {"start_date": "2020-01-01T00:00+00:00"}
    old, new = (make_registration(selector=one, **start) for one in ("s1", "s2"))
    retired = {old.key: "s2 has replaced it"}
    server = fake_server(answers={new.record.fqdn: [new.record.value]})
    emitted, progress, looks = run(server, old, new, wait=wait, retired=retired)
    assert emitted[0].finding == Finding(Verdict.RETIRED, "s2 has replaced it")
    assert emitted[0].urgency is Urgency.NONE
    assert progress.pauses == [], "there is nothing to wait for"
    assert looks.latest == {old.key: MISSING, new.key: PUBLISHED}, "as DNS has it"


def test_another_fault_of_a_retired_key_stays_one_and_is_not_urgent(
    run, make_registration, fake_server, key_records
):
    old = make_registration(start_date="2020-01-01T00:00+00:00")
    server = fake_server(answers={NAME: [key_records[1024]]})
    [check], *_ = run(server, old, retired={old.key: "s2 has replaced it"})
    assert (check.finding.verdict, check.urgency) == (Verdict.MISMATCH, Urgency.NONE)


def test_waiting_pushes_only_the_last_checks(run, make_registration, fake_server, key_records):
    server = fake_server()

    def publish():
        server.answers[NAME] = [key_records[2048]]

    progress = Recorder(on_pause=publish)
    emitted, _, looks = run(server, make_registration(), wait=60.0, progress=progress)
    assert [check.finding.verdict for check in emitted] == [PUBLISHED]
    assert progress.pauses == [[MISSING]]
    assert [check.finding.verdict for check in progress.checks] == [MISSING, PUBLISHED]
    assert looks.latest == {key_of("example.com", "s1"): PUBLISHED}
    assert looks.breaks == {key_of("example.com", "s1"): MISSING}
