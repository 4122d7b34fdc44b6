"""What the servers of a domain have of the delegation of its keys, put together."""

from __future__ import annotations

import pytest

from dkimctl.dns.check import DelegationChecker, delegations
from dkimctl.dns.messages import Answer
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.settings.rotation import Pool
from fake_dns import FakeServer, FakeSource

POOL = Pool(("*",), "a{n}", 1, "{selector}.{domain}.dkim.test")
NAME, TARGET = "a1._domainkey.example.com", "a1.example.com.dkim.test"
RIGHT, OTHER = (Answer(0, True, False, alias=name) for name in (TARGET, "x.test"))
SILENT = NoAnswer("it does not answer")


@pytest.mark.parametrize(
    ("first", "second", "verdict", "reason"),
    [
        (RIGHT, RIGHT, "published", ""),
        (RIGHT, SILENT, "no answer", "published elsewhere; b.test: it does not answer"),
        (RIGHT, [], "inconsistent", "published at 1 of 2 servers; b.test: missing"),
        (SILENT, [], "missing", "a.test: it does not answer"),
        (OTHER, OTHER, "mismatch", f"it leads to x.test, not to {TARGET}"),
        (["v=DKIM1; p="], RIGHT, "inconsistent", "published at 1 of 2 servers; a.test: mismatch"),
        (["v=DKIM1; p="], ["v=DKIM1; p="], "mismatch", "it has a TXT record: delete it"),
        (SILENT, SILENT, "no answer", "a.test: it does not answer"),
    ],
)
def test_only_what_all_servers_have_is_published(first, second, verdict, reason):
    servers = [FakeServer(f"{name}.test", answers={NAME: answer})
               for name, answer in (("a", first), ("b", second))]  # fmt: skip
    source = FakeSource({"example.com": servers})
    [check] = DelegationChecker(source).check(delegations(POOL, "example.com"))
    assert (check.fqdn, check.finding.verdict) == (NAME, verdict)
    assert reason in check.finding.reason


@pytest.mark.parametrize(
    ("zone", "more", "verdict"),
    [("example.net", {}, "missing"), ("example.com", {"bogus": "expired"}, "bogus"),
     ("example.com", {"unknown_delegation": "no reply"}, "no answer")],
)  # fmt: skip
def test_a_zone_that_resolvers_may_not_find_has_none(zone, more, verdict):
    servers = [FakeServer(zone=zone, answers={NAME: RIGHT})]
    source = FakeSource({zone: servers}, states={zone: more})
    [check] = DelegationChecker(source).check(delegations(POOL, "example.com"))
    assert check.finding.verdict == verdict
    assert check.finding.reason
