"""check-dns finds what resolvers find, and tells why servers have another record, or none."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest

import verifiers
from delegation import Host, Zone
from dns_servers import make_database, powerdns_schema
from network import running
from odd_servers import __file__ as odd_servers
from published import name_of, published, register

UPSTREAM, PDNS, OTHER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
FIRST, SECOND = "127.0.0.5", "127.0.0.6"
ODD = {"flapping": "127.0.1.1", "only-txt": "127.0.1.2", "edns-silent": "127.0.1.3"}
# What is at the servers: all of the value is there, unless it is said otherwise.
ELSEWHERE = ("broken.example", "unloaded.example", "apart.example", "live.example")
DOMAINS = ("firm.corp", "apex.example", *ELSEWHERE, *(f"{name}.example" for name in ODD))
_PDNS = f"""
local-address={PDNS}
local-port=53
socket-dir={{directory}}
daemon=no
guardian=no
"""


@pytest.fixture
def values(cli):
    return register(cli, *DOMAINS, more="start_date: 2036-01-01T00:00+00:00")


@pytest.fixture
def network(values, needs_tool, tmp_path):
    """Zones at servers with odd behaviour, or with odd records."""
    records = {domain: published({domain: value}) for domain, value in values.items()}
    (directory := tmp_path / "network").mkdir()
    odd = {name: f"{name}.example" for name in ODD}
    hosts = [
        Host("upstream.test", (UPSTREAM,), also=[*odd.values()]),
        Host("pdns.test", (PDNS,), program=""),
        Host("other.test", (OTHER,), "knotd", records={"apart.example": ""}),
        Host("first.test", (FIRST,), "named", updates=True),
        Host("second.test", (SECOND,), "named", updates=True),
        *(Host(f"{name}.test", (address,), program="") for name, address in ODD.items()),
    ]
    zones = [
        Zone("corp", ("upstream.test",), records["firm.corp"]),
        Zone("apex.example", ("pdns.test",)),
        Zone("broken.example", ("pdns.test",)),
        Zone("unloaded.example", ("pdns.test",)),
        Zone("apart.example", ("upstream.test", "other.test"), records["apart.example"]),
        Zone("live.example", ("first.test", "second.test")),
        *(Zone(zone, (f"{name}.test",), records[zone]) for name, zone in odd.items()),
    ]
    with running(directory, needs_tool, hosts=hosts, zones=zones) as network:
        pairs = [f"{address}={name}" for name, address in ODD.items()]
        network.start("odd", sys.executable, odd_servers, UPSTREAM, *pairs)
        network.wait_for("cat", "odd.log", shows="ready")
        start_powerdns(network, needs_tool, directory, values)
        yield network


def start_powerdns(network, need, directory, values) -> None:
    """PowerDNS takes what other servers refuse: a CNAME at an apex, a value or zone in disorder."""
    make_database(powerdns_schema(need), directory, _PDNS.format(directory=directory))
    rows = []
    names = ["apex.example", "broken.example", "unloaded.example"]
    for number, zone in enumerate(names, 1):
        serial = "none" if zone == "unloaded.example" else "1"
        soa = f"pdns.test hostmaster.test {serial} 3600 600 86400 60"
        rows.append((number, zone, "SOA", soa))
        rows.append((number, zone, "NS", "pdns.test"))
        end = "" if zone == "broken.example" else '"'
        rows.append((number, name_of(zone), "TXT", f'"{values[zone]}{end}'))
        rows.append((number, f"_domainkey.{zone}", None, None))
    rows.append((1, "apex.example", "CNAME", "elsewhere.corp"))
    with closing(sqlite3.connect(directory / "pdns.sqlite3")) as database, database:
        zones = "INSERT INTO domains (id, name, type) VALUES (?, ?, 'NATIVE')"
        database.executemany(zones, list(enumerate(names, 1)))
        records = (
            "INSERT INTO records (domain_id, name, type, content, ttl, auth)"
            " VALUES (?, ?, ?, ?, 60, 1)"
        )
        database.executemany(records, rows)
    network.start("pdns", need("pdns_server"), f"--config-dir={directory}")
    network.wait_for("dig", f"@{PDNS}", "+short", "apex.example", "SOA", shows="3600")


def verifies(cli, network) -> set[str]:
    """The domains whose mail all verifiers accept."""
    answers = verifiers.ask_all(network, cli.home)
    return {domain for (domain, _), said in answers.items() if not any(said)}


def test_servers_that_the_delegation_names_are_asked(cli, network):
    expected = {"firm.corp", "apex.example", "only-txt.example"}
    accepted = verifies(cli, network)
    # From now on, the resolver gives the alias for all types.
    network.run("dig", "apex.example", "A")
    _, items = network.check_dns(cli)
    found = {domain for domain, item in items.items() if item["verdict"] == "published"}
    by_chance = {"flapping.example", "apart.example"}
    assert found - by_chance == accepted - by_chance == expected
    # A server that resolvers cannot ask is none, although it answers other questions than theirs.
    item = items["edns-silent.example"]
    assert item["verdict"] == "no answer"
    assert "the resolver 127.0.0.1: it answers SERVFAIL; the servers have it" in item["reason"]


def test_one_good_look_after_a_bad_one_does_not_end_the_wait(cli, network):
    words = ("flapping.example", "--wait", "8s")
    done, items = network.check_dns(cli, *words)
    assert (done.status, items["flapping.example"]["verdict"]) == (1, "missing")
    # Nor where publish waits for what it has changed, or would have.
    target = "{provider: rfc2136, server: %s, zones: [flapping.example], profiles: [sandbox]}"
    cli.write("config.yaml", f"dns:\n- {target % UPSTREAM}\n")
    network.run("dig", f"@{ODD['flapping']}", name_of("flapping.example"), "TXT")  # it has it now
    words = ("publish", "--sandbox", "--config", "config.yaml", "--yes", "--format", "json", *words)
    done = network.inside(cli)(*words)
    [item] = done.json["items"]
    assert (done.status, item["action"], item["in_dns"]) == (1, "keep", "missing")


def update(network, server: str, line: str) -> None:
    """Change the zone at one of its servers, which do not know of each other."""
    script = f"server {server}\nzone live.example\n{line}\nsend\n"
    done = network.run("nsupdate", "-k", str(network.key_file), stdin=script)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_servers_that_disagree_or_fail_have_a_cause(cli, network, values):
    name, value = name_of("live.example"), values["live.example"]
    add = f'add {name} 60 TXT "{value[:200]}" "{value[200:]}"'
    update(network, FIRST, add)
    words = ("live.example", "apart.example", "broken.example", "unloaded.example")
    _, items = network.check_dns(cli, *words)
    verdicts = [items[domain]["verdict"] for domain in words]
    assert verdicts == ["inconsistent", "inconsistent", "no answer", "no answer"]
    live, apart, broken, unloaded = (items[domain]["reason"] for domain in words)
    assert "; the others have an older zone (serial number 1, not 2): wait for the transfer" in live
    assert "all have serial number 1, so no transfer comes: raise it at the primary" in apart
    assert "it answers SERVFAIL for this name alone: its data there is broken" in broken
    assert "it answers SERVFAIL for the whole zone: it is not loaded there" in unloaded
    update(network, SECOND, add)
    update(network, FIRST, f"delete {name} TXT")
    _, items = network.check_dns(cli, "live.example")
    reason = "; the others have a newer zone (serial number 3, not 2): make the change again"
    assert reason in items["live.example"]["reason"]
