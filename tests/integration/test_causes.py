"""check-dns finds what resolvers find, and tells why servers have another record, or none."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing

import pytest

import verifiers
from delegation import Host, Zone
from dns_servers import make_database, powerdns_schema
from network import running
from odd_servers import __file__ as odd_servers
from published import name_of, private_keys, published, register

UPSTREAM, PDNS = "127.0.0.2", "127.0.0.3"
ODD = {"flapping": "127.0.1.1", "only-txt": "127.0.1.2", "edns-silent": "127.0.1.3"}
# What is at the servers: all of the value is there, unless it is said otherwise.
DOMAINS = ("firm.corp", "apex.example", "broken.example", *(f"{name}.example" for name in ODD))
_PDNS = f"""
local-address={PDNS}
local-port=53
socket-dir={{directory}}
daemon=no
guardian=no
"""


@pytest.fixture
def values(cli):
    return register(cli, *DOMAINS)


@pytest.fixture
def network(values, needs_tool, tmp_path):
    """Zones at servers with odd behaviour, or with odd records."""
    records = {domain: published({domain: value}) for domain, value in values.items()}
    (directory := tmp_path / "network").mkdir()
    odd = {name: f"{name}.example" for name in ODD}
    hosts = [
        Host("upstream.test", (UPSTREAM,), also=[*odd.values()]),
        Host("pdns.test", (PDNS,), program=""),
        *(Host(f"{name}.test", (address,), program="") for name, address in ODD.items()),
    ]
    zones = [
        Zone("corp", ("upstream.test",), records["firm.corp"]),
        Zone("apex.example", ("pdns.test",)),
        Zone("broken.example", ("pdns.test",)),
        *(Zone(zone, (f"{name}.test",), records[zone]) for name, zone in odd.items()),
    ]
    with running(directory, needs_tool, hosts=hosts, zones=zones) as network:
        pairs = [f"{address}={name}" for name, address in ODD.items()]
        network.start("odd", sys.executable, odd_servers, UPSTREAM, *pairs)
        network.wait_for("cat", "odd.log", shows="ready")
        start_powerdns(network, needs_tool, directory, values)
        yield network


def start_powerdns(network, need, directory, values) -> None:
    """PowerDNS takes what other servers refuse: a CNAME at an apex, and a value without its end."""
    make_database(powerdns_schema(need), directory, _PDNS.format(directory=directory))
    rows = []
    for number, zone in enumerate(("apex.example", "broken.example"), 1):
        rows.append((number, zone, "SOA", "pdns.test hostmaster.test 1 3600 600 86400 60"))
        rows.append((number, zone, "NS", "pdns.test"))
        end = "" if zone == "broken.example" else '"'
        rows.append((number, name_of(zone), "TXT", f'"{values[zone]}{end}'))
    rows.append((1, "apex.example", "CNAME", "elsewhere.corp"))
    with closing(sqlite3.connect(directory / "pdns.sqlite3")) as database, database:
        zones = "INSERT INTO domains (id, name, type) VALUES (?, ?, 'NATIVE')"
        database.executemany(zones, [(1, "apex.example"), (2, "broken.example")])
        records = (
            "INSERT INTO records (domain_id, name, type, content, ttl, auth)"
            " VALUES (?, ?, ?, ?, 60, 1)"
        )
        database.executemany(records, rows)
    network.start("pdns", need("pdns_server"), f"--config-dir={directory}")
    network.wait_for("dig", f"@{PDNS}", "+short", "apex.example", "SOA", shows="3600")


def verifies(cli, network) -> set[str]:
    """The domains whose mail all verifiers accept."""
    questions = []
    for number, ((domain, selector), key) in enumerate(private_keys(cli.home).items()):
        file = cli.home / f"{number}.pem"
        file.touch(0o600)
        file.write_bytes(key)
        questions.append((domain, selector, str(file)))
    done = network.run(sys.executable, verifiers.__file__, stdin=json.dumps(questions))
    assert done.returncode == 0, done.stderr
    answers = zip(questions, json.loads(done.stdout), strict=True)
    return {domain for (domain, _, _), said in answers if not any(said)}


def test_servers_that_the_delegation_names_are_asked(cli, network):
    accepted = verifies(cli, network) - {"flapping.example"}
    # From now on, the resolver gives the alias for all types.
    network.run("dig", "apex.example", "A")
    _, items = network.check_dns(cli)
    found = {domain for domain, item in items.items() if item["verdict"] == "published"}
    assert (
        found - {"flapping.example"}
        == accepted
        == {"firm.corp", "apex.example", "only-txt.example"}
    )
    # A server that resolvers cannot ask is none, although it answers other questions than theirs.
    item = items["edns-silent.example"]
    assert item["verdict"] == "no answer"
    assert "the resolver 127.0.0.1: it answers SERVFAIL; the servers have it" in item["reason"]


def test_one_good_look_after_a_bad_one_does_not_end_the_wait(cli, network):
    words = ("flapping.example", "--wait", "8s")
    done, items = network.check_dns(cli, *words)
    assert (done.status, items["flapping.example"]["verdict"]) == (1, "missing")
