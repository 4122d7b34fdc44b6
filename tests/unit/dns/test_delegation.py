"""What the servers of a domain have of the delegation of its keys, put together."""

from __future__ import annotations

import pytest

from dkimctl.dns.delegation import check_delegations, delegations
from dkimctl.dns.messages import Answer
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.settings.delegation import Pool
from fake_dns import FakeServer, FakeSource

POOL = Pool(("*",), "a{n}", 1, "{selector}.{domain}.dkim.test")
NAME, TARGET = "a1._domainkey.example.com", "a1.example.com.dkim.test"
RIGHT, OTHER = (Answer(0, True, False, alias=name) for name in (TARGET, "x.test"))
SILENT = NoAnswer("it does not answer")


@pytest.mark.parametrize(
    ("first", "second", "state", "found", "reason"),
    [
        (RIGHT, RIGHT, "right", (), ""),
        (RIGHT, SILENT, "unknown", (), "unknown at b.test: it does not answer"),
        (RIGHT, [], "missing", (), "missing at b.test"),
        (SILENT, [], "missing", (), "missing at b.test"),
        ([], OTHER, "elsewhere", ("x.test",), "elsewhere at b.test"),
        (["v=DKIM1; p="], RIGHT, "elsewhere", (), "elsewhere at a.test: it has a TXT record: "),
        (SILENT, SILENT, "unknown", (), "unknown at a.test, b.test: it does not answer"),
    ],
)
def test_one_server_is_enough_for_the_worse_state(first, second, state, found, reason):
    servers = [FakeServer(f"{name}.test", answers={NAME: answer})
               for name, answer in (("a", first), ("b", second))]  # fmt: skip
    source = FakeSource({"example.com": servers})
    [seen] = check_delegations(delegations(POOL, "example.com"), source)
    assert (seen.fqdn, seen.targets, seen.state, seen.found) == (NAME, (TARGET,), state, found)
    assert seen.reason.startswith(reason)


@pytest.mark.parametrize(
    ("zone", "more", "state"),
    [("example.net", {}, "missing"), ("example.com", {"bogus": "expired"}, "missing"),
     ("example.com", {"unknown_delegation": "no answer"}, "unknown")],
)  # fmt: skip
def test_a_zone_that_resolvers_may_not_find_has_none(zone, more, state):
    servers = [FakeServer(zone=zone, answers={NAME: RIGHT})]
    source = FakeSource({zone: servers}, states={zone: more})
    [seen] = check_delegations(delegations(POOL, "example.com"), source)
    assert seen.state == state
    assert seen.reason
