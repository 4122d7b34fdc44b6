"""check-dns finds every authoritative server, in a network with a root server of ours."""

from __future__ import annotations

import functools
import signal
import subprocess

import pytest

from delegation import Host, Zone
from network import running
from published import looks, name_of, register, txt

DOMAINS = (
    "right.example.com",
    "lag.example.com",
    "child.example.com",
    "alias.example.com",
    "www.example.org",
    "nowhere.invalid",
)


@pytest.fixture
def network(cli, needs_tool, tmp_path):
    """Three servers, one with two names; ns2 lacks a record of example.com. And a dead one."""
    values = register(cli, *DOMAINS)
    lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
    lines["alias.example.com"] = f"{name_of('alias.example.com')}. CNAME key.example.net.\n"
    common = lines["right.example.com"] + lines["alias.example.com"]
    hosts = [
        Host("ns1.test", ("127.0.0.2", "::1"), "nsd"),
        Host("ns2.test", ("127.0.0.3",), "knotd", records={"example.com": common}),
        Host("ns3.test", ("127.0.0.4",), "named"),
        Host("six.test", ("::1",), program=""),  # that of ns1
        Host("dead.test", ("127.0.0.9",), program=""),
    ]
    zones = [
        Zone(
            "example.com", ("ns1.test", "ns2.test", "six.test"), common + lines["lag.example.com"]
        ),
        Zone("example.net", ("ns2.test",), txt("key.example.net", values["alias.example.com"])),
        Zone("example.org", ("ns1.test", "dead.test"), lines["www.example.org"]),
        Zone("_domainkey.child.example.com", ("ns3.test",), lines["child.example.com"]),
    ]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


@pytest.fixture
def check(cli, network):
    return functools.partial(network.check_dns, cli)


def servers_of(item) -> list[str]:
    return [one["server"] for one in item["servers"]]


def test_all_servers_of_each_zone_are_asked_at_all_their_addresses(check):
    done, items = check()
    assert done.status == 1, done.err
    all_three = ["ns1.test (127.0.0.2)", "ns1.test, six.test (::1)", "ns2.test (127.0.0.3)"]
    answers = {domain: (item["verdict"], servers_of(item)) for domain, item in items.items()}
    assert answers == {
        "right.example.com": ("published", all_three),
        "lag.example.com": ("inconsistent", all_three),
        "child.example.com": ("published", ["ns3.test (127.0.0.4)"]),
        "alias.example.com": ("published", all_three),
        "www.example.org": (
            "no answer",
            ["dead.test (127.0.0.9)", "ns1.test (127.0.0.2)", "ns1.test (::1)"],
        ),
        "nowhere.invalid": ("missing", []),
    }
    assert items["alias.example.com"]["alias"] == "key.example.net"
    assert "DNS has no zone for nowhere.invalid" in items["nowhere.invalid"]["reason"]
    assert "dead.test (127.0.0.9)" in items["www.example.org"]["reason"]


def test_without_ipv6_the_other_servers_are_asked(check, network):
    assert network.run("ip", "address", "delete", "::1/128", "dev", "lo").returncode == 0
    done, items = check("right.example.com")
    item = items["right.example.com"]
    assert (done.status, item["verdict"]) == (0, "published")
    assert servers_of(item) == ["ns1.test (127.0.0.2)", "ns2.test (127.0.0.3)"]


def test_with_resolver_only_that_of_the_system_is_asked(check):
    done, items = check("--resolver", "child.example.com")
    item = items["child.example.com"]
    assert (done.status, item["verdict"]) == (0, "published")
    assert servers_of(item) == ["the system's resolver"]


def test_looks_before_an_interruption_are_recorded(cli, network):
    words = ("--wait", "60s", "right.example.com", "lag.example.com")
    process = network.inside(cli).start(
        "check-dns", "--sandbox", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert b"1 of 2 published" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, b"interrupted" in err) == (130, True)
    assert b"hint: the results so far are in the ledger; run the same command" in err
    assert looks(cli.home) == {
        "right.example.com": "published",
        "lag.example.com": "inconsistent",
    }


@pytest.mark.parametrize("words", [(), ("--server", "127.0.0.2")])
def test_a_saved_result_tells_that_a_damaged_ledger_gets_no_looks(cli, network, words):
    saved = cli("show-dns", "--sandbox", "right.example.com", "--format", "json").out
    [ledger] = cli.home.rglob("ledger.db")
    ledger.write_bytes(b"not a database")
    command = ("check-dns", "--sandbox", "--from", "-", *words)
    done = network.inside(cli)(*command, stdin=saved)
    assert (done.status, "published 1" in done.err) == (0, True)
    assert ("cannot record in the ledger" in done.err) is (not words)  # given servers do not count


PAR1, PAR2 = "par1.test (127.0.0.5)", "par2.test (127.0.0.6)"
NS1, NS2, NS3 = "ns1.test (127.0.0.2)", "ns2.test (127.0.0.3)", "ns3.test (127.0.0.4)"
OLD = "published at 1 of 2 servers; {}, a server of the zone above: missing"
# Records that the zone's own servers have, and what resolvers may get elsewhere: the verdict.
SAME = "all have serial number 1, so no transfer comes: raise it at the primary"
ELSEWHERE = {
    "old.corp.test": OLD.format(PAR1),
    "both.corp.test": f"missing at 2 of 3 servers; {NS1}: published",
    "gone.corp.test": OLD.format(PAR2),
    "split.corp.test": f"published at 1 of 2 servers; {NS2}, only named by {PAR2}: missing",
    "alias.corp.test": OLD.format(PAR1),
    "moved.corp.test": f"published at 1 of 2 servers; {NS3}: missing",
    "below.corp.test": f"published at 2 of 3 servers; {NS3}: missing; {SAME}",
    "fresh.corp.test": "published",
    "right.corp.test": "published",
}


@pytest.fixture
def corp(cli, needs_tool, tmp_path):
    """The servers of corp.test have old copies of zones that they delegate, or delegate nothing."""
    values = register(cli, *ELSEWHERE)
    lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
    alias = f"{name_of('alias.corp.test')}. CNAME key.old.corp.test.\n"
    lines["old.corp.test"] += txt("key.old.corp.test", values["alias.corp.test"])
    at_two = "_domainkey.moved.corp.test. NS ns3.test.\n"
    split = "split.corp.test. NS {}.\n"
    gone = "gone.corp.test. NS ns1.test.\n"
    copies = {"old.corp.test": "", "both.corp.test": ""}
    at_par1 = {"corp.test": split.format("ns1.test") + gone + alias, **copies}
    at_par2 = {"corp.test": split.format("ns2.test") + alias, "both.corp.test": ""}
    hosts = [
        Host("ns1.test", ("127.0.0.2",), "nsd", also=("_domainkey.below.corp.test",)),
        Host(
            "ns2.test", ("127.0.0.3",), "knotd", also=("split.corp.test",),
            records={"split.corp.test": "", "moved.corp.test": at_two},
        ),
        Host(
            "ns3.test", ("127.0.0.4",), also=("_domainkey.moved.corp.test",),
            records={"_domainkey.below.corp.test": ""},
        ),
        Host(
            "par1.test", ("127.0.0.5",), "named", also=(*copies, "fresh.corp.test"),
            records=at_par1,
        ),
        Host("par2.test", ("127.0.0.6",), "knotd", also=("both.corp.test",), records=at_par2),
    ]  # fmt: skip
    zones = [
        Zone("corp.test", ("par1.test", "par2.test")),
        *(Zone(f"{name}.corp.test", ("ns1.test",), lines[f"{name}.corp.test"])
          for name in ("old", "both", "fresh", "right")),
        *(Zone(f"{name}.corp.test", ("ns1.test",), lines[f"{name}.corp.test"], delegated_to=())
          for name in ("split", "gone")),
        Zone("moved.corp.test", ("ns1.test", "ns2.test"), lines["moved.corp.test"]),
        Zone("_domainkey.moved.corp.test", ("ns3.test",), delegated_to=()),
        Zone("below.corp.test", ("ns1.test",)),
        Zone("_domainkey.below.corp.test", ("ns2.test", "ns3.test"), lines["below.corp.test"]),
    ]  # fmt: skip
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


def test_what_resolvers_get_from_the_servers_of_the_zone_above_counts(cli, corp):
    done, items = corp.check_dns(cli)
    got = {domain: items[domain]["reason"] or items[domain]["verdict"] for domain in ELSEWHERE}
    # The resolver may have been told that the zone has no NS records.
    got["moved.corp.test"] = got["moved.corp.test"].replace(", only in the delegation", "")
    wrong = {domain: reason for domain, reason in got.items() if reason != ELSEWHERE[domain]}
    assert (done.status, wrong) == (1, {})
    # As a resolver says that cannot ask the other server of corp.test.
    for left, domain in {"par2.test": "old.corp.test", "par1.test": "gone.corp.test"}.items():
        corp.stop(left)
        corp.restart_resolver()
        assert "NXDOMAIN" in corp.run("dig", name_of(domain), "TXT").stdout
        assert "NOERROR" in corp.run("dig", name_of("right.corp.test"), "TXT").stdout
        corp.start_host(left)
