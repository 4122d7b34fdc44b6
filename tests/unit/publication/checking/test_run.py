"""CheckProgress again and again: for what, how often, how long."""

from __future__ import annotations

from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models.registration import Registration
from dkimctl.publication.checking.run import Checker, intervals, repeat_checks
from dkimctl.publication.verdicts import Check, Finding, Verdict

PUBLISHED, MISSING = Verdict.PUBLISHED, Verdict.MISSING
NAME = "s1._domainkey.example.com"


class World:
    """DNS and time. Each record is published at its time, in seconds; a look takes `slowness`."""

    def __init__(self, *published_at: float, slowness: float = 0.0) -> None:
        self.published_at = published_at
        self.slowness = slowness
        self.now = 0.0
        self.looks: list[tuple[float, list[str]]] = []  # (when, selectors)
        self.pauses: list[float] = []
        self.told: list[list[Verdict]] = []

    def check(self, registrations):
        self.looks.append((self.now, [found.selector for found in registrations]))
        for found in registrations:
            at = self.published_at[int(found.selector)]
            verdict = PUBLISHED if at <= self.now else MISSING
            yield Check("example.com", found.selector, "", None, None, Finding(verdict))
        self.now += self.slowness

    def pause(self, seconds, checks):
        self.pauses.append(seconds)
        self.told.append([check.finding.verdict for check in checks])
        self.now += seconds

    def watch(self, seconds: float) -> list[Verdict]:
        """The last verdicts."""
        registrations = [
            Registration("example.com", str(number)) for number in range(len(self.published_at))
        ]
        found = repeat_checks(
            self.check,
            registrations,
            seconds=seconds,
            is_good=lambda check: check.finding.verdict is PUBLISHED,
            pause=self.pause,
            clock=lambda: 500 + self.now,
        )
        assert [check.selector for check in found] == [one.selector for one in registrations]
        return [check.finding.verdict for check in found]


NEVER = 1e9


def test_where_all_is_good_it_looks_once():
    world = World(0, 0, 0)
    assert world.watch(600) == [PUBLISHED] * 3
    assert world.looks == [(0, ["0", "1", "2"])]
    assert world.pauses == []


def test_only_what_is_not_good_is_looked_at_again():
    world = World(0, 4, 3, 1)
    assert world.watch(600) == [PUBLISHED] * 4
    assert world.looks == [(0, ["0", "1", "2", "3"]), (2, ["1", "2", "3"]), (5, ["1", "2"])]
    assert world.told == [
        [PUBLISHED, MISSING, MISSING, MISSING],
        [PUBLISHED, MISSING, MISSING, PUBLISHED],
    ]


def test_it_ends_when_time_is_up_after_a_last_look():
    world = World(0, 10, NEVER)
    assert world.watch(10) == [PUBLISHED, PUBLISHED, MISSING]
    assert [when for when, _ in world.looks] == [0, 2, 5, 9.5, 10]
    assert world.pauses == [2, 3, 4.5, 0.5]


def test_no_time_is_one_look():
    world = World(NEVER)
    assert world.watch(0) == [MISSING]
    assert len(world.looks) == 1


def test_a_look_that_takes_longer_than_the_time_is_the_last():
    world = World(NEVER, slowness=20)
    world.watch(10)
    assert len(world.looks) == 1


def test_nothing_to_watch_takes_no_time():
    world = World()
    assert world.watch(600) == []
    assert world.pauses == []


def test_intervals_grow_up_to_a_minute():
    found = list(islice(intervals(), 30))
    assert found[:3] == [2, 3, 4.5]
    assert found[-1] == max(found) == 60
    assert all(before < after <= before * 1.5 or after == 60 for before, after in pairwise(found))


@given(
    st.lists(st.floats(0, 2000), max_size=5),
    st.floats(0, 1500),
    st.floats(0, 5),
)
def test_what_is_published_is_seen_within_one_interval(published_at, seconds, slowness):
    world = World(*published_at, slowness=slowness)
    found = world.watch(seconds)
    last_look = world.looks[-1][0]
    assert found == [PUBLISHED if at <= last_look else MISSING for at in published_at]
    assert sum(world.pauses) <= seconds + 1e-6
    assert last_look <= seconds + 1e-6
    if MISSING in found:
        assert world.now >= seconds - 1e-6
    else:
        assert last_look <= max([0, *published_at]) + 60 + slowness


def test_checks_come_in_the_order_of_registrations(
    check, make_registration, fake_server, key_records
):
    domains = [f"d{number % 700}.example.com" for number in range(4500)]
    registrations = [
        make_registration(domain, f"s{number}") for number, domain in enumerate(domains)
    ]
    server = fake_server(said={registrations[2000].record.fqdn: [key_records[2048]]})
    found = check({"example.com": [server]}, *registrations)
    assert [check.fqdn for check in found] == [one.record.fqdn for one in registrations]
    published = [check.selector for check in found if check.finding.verdict is Verdict.PUBLISHED]
    assert published == ["s2000"]


def test_each_server_is_given_its_questions_in_one_go(make_registration, fake_server, fake_source):
    shared, other = fake_server("shared.test"), fake_server("other.test")
    source = fake_source({"example.com": [shared], "example.net": [shared, other]})
    registrations = [make_registration(f"example.{tld}") for tld in ("com", "net", "org")]
    with Checker(source) as checker:
        list(checker.check(registrations))
    net = "s1._domainkey.example.net"
    assert shared.prefetched == [[NAME, net]]
    assert other.prefetched == [[net]]


def test_each_check_is_heard_of_as_it_is_made(make_registration, fake_server, fake_source):
    heard = []
    source = fake_source({"example.com": [fake_server()]})
    registrations = [make_registration(selector=f"s{number}") for number in range(50)]
    with Checker(source, checked=heard.append) as checker:
        found = list(checker.check(registrations))
    assert sorted(heard) == sorted(found)


def test_nothing_is_remembered_of_servers_when_it_is_checked_again(
    make_registration, fake_server, fake_source
):
    source = fake_source({"example.com": [fake_server()]})
    with Checker(source) as checker:
        list(checker.check([make_registration()]))
        assert source.forgot == 0
        assert len(list(checker.check_again([make_registration()]))) == 1
        assert source.forgot == 1
        assert list(checker.check([])) == []
