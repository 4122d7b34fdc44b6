from __future__ import annotations

import pytest

from dkimctl.dns.check import Checker
from dkimctl.dns.verdicts import Check
from fake_dns import FakeSource, frame, make_reply, read_query


@pytest.fixture(scope="session")
def over_tcp():
    """Answers each question of a connection with the value, after what `before` makes of it."""

    def make(value="over TCP", before=lambda wire: ()):
        async def serve(reader, writer):
            while True:
                wire = await read_query(reader)
                writer.write(b"".join(map(frame, (*before(wire), make_reply(wire, value)))))

        return serve

    return make


@pytest.fixture
def check(make_registration):
    """Check registrations, by default one, in zones with these servers."""

    def run(zones, *registrations, expect_absent=False, source=None, **options) -> list[Check]:
        source = source or FakeSource(zones, **options)
        checker = Checker(source, expect_absent=expect_absent)
        return list(checker.check(registrations or [make_registration()]))

    return run


@pytest.fixture
def check_one(check):
    """Check one registration at these servers of its zone, and `zones` beside it."""

    def run(*servers, zones=(), **options) -> Check:
        (result,) = check({"example.com": servers, **dict(zones)}, **options)
        return result

    return run
