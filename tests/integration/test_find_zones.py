"""--find-zones looks up the zone of a name in DNS, here at a resolver that recurses from a root."""

from __future__ import annotations

import json
import re

import pytest

from delegation import Host, Zone
from network import running

HOST = "ns.hosts.test"
ZONES = [
    Zone("example.com", (HOST,), "alias._domainkey.example.com. CNAME s1.example.net.\n"),
    Zone("delegated.example.com", (HOST,)),
    Zone("example.net", (HOST,)),
]
SPECS = """
defaults: {enable: false, key_len: 1024}
domains:
- {sign_domain: mail.EXAMPLE.com, selector: s1}
- {sign_domain: example.com, selector: alias}
- {sign_domain: delegated.example.com, selector: s1}
- example.net
"""


@pytest.fixture
def network(needs_tool, tmp_path):
    hosts = [Host(HOST, ("127.0.0.2",), "named")]
    with running(tmp_path, needs_tool, hosts=hosts, zones=ZONES) as network:
        yield network


@pytest.fixture
def inside(cli, network):
    return network.inside(cli)


def test_the_zone_is_the_nearest_name_above_with_an_soa_record(cli, inside):
    """That of an alias is the zone of its owner, not of its target."""
    assert cli("register", "-", "--sandbox", stdin=SPECS).status == 0
    words = ("--sandbox", "--format", "powerdns", "--find-zones", "--output-dir", "zones")
    done = inside("show-dns", *words)
    assert (done.status, done.out) == (0, ""), done.err
    files = sorted(path.name for path in (cli.home / "zones").iterdir())
    assert files == ["delegated.example.com.json", "example.com.json", "example.net.json"]
    done = inside("show-dns", "--sandbox", "--format", "nsupdate", "--find-zones")
    assert done.status == 0, done.err
    zones = dict.fromkeys(re.findall(r"^zone (.*)\.$", done.out, re.MULTILINE))
    assert set(zones) == {zone.name for zone in ZONES}
    of_alias = done.out.partition("update add alias._domainkey.example.com.")[0]
    assert re.findall(r"^zone (.*)\.$", of_alias, re.MULTILINE)[-1] == "example.com"


def test_verbose_logs_the_lookups(cli, inside):
    specs = "[{sign_domain: example.net, selector: s1}]"
    assert cli("register", "-", "--sandbox", stdin=specs).status == 0
    words = ("--sandbox", "--format", "octodns", "--find-zones", "--verbose")
    done = inside("show-dns", *words)
    assert done.status == 0, done.err
    [line] = [line for line in done.err.splitlines() if "SOA s1._domainkey.example.net: NX" in line]
    assert "no record, zone example.net, " in line


def test_many_lookups_are_announced_and_need_no_ledger(cli, inside):
    one = "- {sign_domain: d0.example.com, selector: s1, enable: false, key_len: 1024}"
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=one)
    (item,) = done.json["items"]
    items = [json.loads(json.dumps(item).replace("d0.", f"d{n}.")) for n in range(100)]
    cli.write("saved.json", json.dumps({"items": items}))
    done = inside("show-dns", "--from", "saved.json", "--format", "octodns", "--find-zones")
    assert done.status == 0, done.err
    assert done.out.count("type: TXT\n") == 100
    assert "looking up the zones of 100 names in DNS" in done.err


def test_without_a_zone_or_an_answer_nothing_is_written(cli, inside, network):
    specs = (
        "[{sign_domain: nowhere.invalid, selector: s1}, {sign_domain: example.com, selector: s1}]"
    )
    assert cli("register", "-", "--sandbox", stdin=specs).status == 0
    words = ("--sandbox", "--format", "octodns", "--find-zones", "--output-dir", "zones")
    no_zone = inside("show-dns", *words)
    assert (no_zone.status, no_zone.out) == (2, "")
    assert "DNS has no zone for s1._domainkey.nowhere.invalid" in no_zone.err
    network.stop(HOST)
    no_answer = inside("show-dns", *words, "example.com")
    assert (no_answer.status, no_answer.out) == (4, "")
    assert "cannot find the zone of s1._domainkey.example.com" in no_answer.err
    with network.without_nameservers():
        no_resolver = inside("show-dns", *words, "example.com")
    assert (no_resolver.status, no_resolver.out) == (4, "")
    assert "no usable DNS resolver" in no_resolver.err
    for done in (no_zone, no_answer, no_resolver):
        assert "--zone" in done.err
        assert "defect" not in done.err
    assert not (cli.home / "zones").exists()
