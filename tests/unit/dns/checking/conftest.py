from __future__ import annotations

import asyncio
import random

import pytest

from dkimctl.dns.check import Checker
from dkimctl.dns.messages import Answer, make_txt_question
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.verdicts import Check
from dkimctl.dns.zones import Zone


class FakeServer:
    """A server with an answer for each name: an Answer, its values, or an error to raise.

    Other names have the answer of the wildcard. `asked` keeps the names it was asked for.
    """

    def __init__(
        self, label="ns.test (192.0.2.1)", zone="example.com", answers=None, wildcard=()
    ) -> None:
        self.label = label
        self.hosts = frozenset(label.partition(" (")[0].split(", "))
        self.zone = zone
        self.answers = answers or {}
        self.wildcard = wildcard
        self.asked: list[str] = []
        self.prefetched: list[list[str]] = []

    async def ask(self, asked) -> Answer:
        name = asked.name.to_text(omit_final_dot=True).lower()
        self.asked.append(name)
        await asyncio.sleep(random.random() / 1000)  # so that answers come in any order
        answer = self.answers.get(name, self.wildcard)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return answer
        values = tuple(value.encode("utf-8", "surrogateescape") for value in answer)
        return Answer(0, True, False, values, zone="" if values else self.zone)

    async def prefetch(self, questions) -> None:
        names = [asked.name.to_text(omit_final_dot=True) for asked in questions]
        assert list(questions) == [make_txt_question(name) for name in names]
        self.prefetched.append(names)


class FakeSource:
    """Knows the servers of zones, by their names; an error in their place is raised.

    `states` has further fields of some of the zones. `bogus_records` has the reasons why records
    cannot be validated, by question; `validated` keeps the questions.
    """

    def __init__(self, zones, *, is_given: bool = False, states=(), bogus_records=()) -> None:
        self.zones = zones
        self.states = dict(states)
        self.bogus_records = dict(bogus_records)
        self.validated: list[str] = []
        self.is_given = is_given
        self.forgot = 0

    async def zone_with(self, name):
        above = [zone for zone in self.zones if name == zone or name.endswith(f".{zone}")]
        return await self.zone(max(above, key=len)) if above else Zone("", ())

    async def zone(self, name):
        servers = self.zones.get(name, NoAnswer(f"DNS names no server for {name}"))
        if isinstance(servers, Exception):
            raise servers
        named = [NameServer(one.label, one.hosts, one) for one in servers]
        return Zone(name, named, **self.states.get(name, {}))

    async def zone_of_alias(self, target, server):
        return await self.zone_with(target)

    async def why_bogus(self, questions):
        self.validated += map(str, questions)
        return [self.bogus_records.get(str(question), "") for question in questions]

    def forget(self) -> None:
        self.forgot += 1


@pytest.fixture(scope="session")
def fake_server():
    return FakeServer


@pytest.fixture(scope="session")
def fake_source():
    return FakeSource


@pytest.fixture
def check(make_registration):
    """Check registrations, by default one, in zones with these servers."""

    def run(zones, *registrations, expect_absent=False, source=None, **options) -> list[Check]:
        source = source or FakeSource(zones, **options)
        with Checker(source, expect_absent=expect_absent) as checker:
            return list(checker.check(registrations or [make_registration()]))

    return run


@pytest.fixture
def check_one(check):
    """Check one registration at these servers of its zone, and `zones` beside it."""

    def run(*servers, zones=(), **options) -> Check:
        (result,) = check({"example.com": servers, **dict(zones)}, **options)
        return result

    return run
