"""check-dns finds zones and records that a validating resolver rejects."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys

import dns.rdatatype
import dns.zone
import pytest

from delegation import Host, Security, Zone
from dns_servers import make_database, powerdns_schema
from network import running
from odd_servers import __file__ as odd_servers
from published import name_of, register, txt

DOMAINS = ("unsigned.test", "secure.test", "expired.test", "wrong.test", "alias.test", "far.test")
SECURITY = {
    "secure.test": Security.SECURE,
    "expired.test": Security.EXPIRED,
    "wrong.test": Security.WRONG_DS,
}
TARGET = "key.expired.test"


@pytest.fixture
def run(cli, needs_tool, tmp_path):
    """The items of check-dns by domain, in a network with signed zones; and the exit status."""

    def run(*words: str, validates: bool = True, unsigned: str = ""):
        values = register(cli, *DOMAINS)
        lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
        lines["alias.test"] = f"{name_of('alias.test')}. CNAME {TARGET}.\n"
        lines["expired.test"] += txt(TARGET, values["alias.test"])
        zones = [
            Zone(domain, ("ns.test",), records, security=SECURITY.get(domain, Security.INSECURE))
            for domain, records in lines.items()
        ]
        hosts = [Host("ns.test", ("127.0.0.2",))]
        with running(
            tmp_path, needs_tool, hosts=hosts, zones=zones, validates=validates,
            resolver_options="ede: yes",
        ) as network:  # fmt: skip
            if unsigned:
                network.stop("ns.test")
                file = tmp_path / "ns.test" / f"{unsigned}.zone"
                remove_signature(file, unsigned, name_of(unsigned))
                network.start_host("ns.test")
            done, items = network.check_dns(cli, *words)
        return done.status, items

    return run


def remove_signature(file, origin: str, name: str) -> None:
    """Remove the signature of a name's TXT record from a signed zone file."""
    zone = dns.zone.from_file(str(file), origin, relativize=False)
    zone.delete_rdataset(f"{name}.", dns.rdatatype.RRSIG, dns.rdatatype.TXT)
    zone.to_file(str(file), relativize=False)


def verdicts(items) -> dict[str, str]:
    return {domain: item["verdict"] for domain, item in items.items()}


EXPECTED = {
    "unsigned.test": "published",
    "secure.test": "published",
    "expired.test": "bogus",
    "wrong.test": "bogus",
    "alias.test": "bogus",
    "far.test": "published",
}


def test_what_the_resolver_cannot_validate_is_bogus(run):
    status, items = run()
    assert (status, verdicts(items)) == (1, EXPECTED)
    reason = "the resolver 127.0.0.1 cannot validate NS expired.test (DNSSEC): EDE "
    assert items["expired.test"]["reason"].startswith(reason)
    assert [one["verdict"] for one in items["wrong.test"]["servers"]] == ["published"]


def test_a_resolver_in_place_of_the_servers_says_the_same(run):
    status, items = run("--resolver")
    assert (status, verdicts(items)) == (1, EXPECTED)


def test_a_resolver_that_does_not_validate_says_nothing(run):
    status, items = run(validates=False)
    assert (status, set(verdicts(items).values())) == (0, {"published"})


def test_a_record_without_its_signature_is_bogus(run):
    _, items = run("secure.test", unsigned="secure.test")
    assert items["secure.test"]["verdict"] == "bogus"
    assert "TXT s1._domainkey.secure.test (DNSSEC): EDE " in items["secure.test"]["reason"]


POWERDNS = """
launch=gsqlite3
gsqlite3-database={home}/pdns.sqlite3
gsqlite3-dnssec=yes
local-address=127.0.0.4
socket-dir={home}
daemon=no
guardian=no
"""
CHAINS = {"plain": (), "nsec": (), "nsec3": ("1 0 0 -",)}  # the parameters of set-nsec3
FIRST, SECOND, RIGHT, WILD = "first", "second", "right", "wild"


@pytest.fixture
def powerdns(cli, needs_tool, tmp_path):
    """A network in which a program writes records into the database of a PowerDNS.

    The `first` key of a domain, and the `second`, beside one that PowerDNS knows.
    """
    domains = [f"{label}.{zone}.test" for zone in CHAINS for label in (FIRST, SECOND, RIGHT, WILD)]
    values = register(cli, *domains)
    home = tmp_path / "pdns"
    home.mkdir()
    make_database(powerdns_schema(needs_tool), home)
    (home / "pdns.conf").write_text(POWERDNS.format(home=home))

    def pdnsutil(*words: str) -> str:
        command = [needs_tool("pdnsutil"), f"--config-dir={home}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    ds = ""
    for zone, parameters in CHAINS.items():
        name = f"{zone}.test"
        right, wild = f"{RIGHT}.{name}", f"{WILD}.{name}"
        more = txt(name_of(right), values[right]) + txt(f"s0._domainkey.{SECOND}.{name}", "old")
        more += txt(f"*._domainkey.{wild}", values[wild])
        (home / zone).write_text(
            f"$ORIGIN {name}.\n$TTL 60\n@ SOA ns root 1 2 3 4 60\n@ NS pdns.test.\n{more}"
        )
        pdnsutil("load-zone", name, str(home / zone))
        if zone != "plain":
            pdnsutil("secure-zone", name)
            lines = pdnsutil("export-zone-ds", name).splitlines()
            ds += "".join(f"{line.partition(' ; ')[0]}\n" for line in lines if " 13 2 " in line)
        for each in parameters:
            pdnsutil("set-nsec3", name, each)
        pdnsutil("rectify-zone", name)
    with contextlib.closing(sqlite3.connect(home / "pdns.sqlite3")) as database, database:
        for domain in domains:
            if not domain.startswith((RIGHT, WILD)):
                database.execute(
                    "INSERT INTO records (domain_id, name, type, content, ttl)"
                    " SELECT id, ?, 'TXT', ?, 60 FROM domains WHERE name = ?",
                    (name_of(domain), f'"{values[domain]}"', domain.partition(".")[2]),
                )
    zones = [
        Zone("test", ("ns.test",), ds, security=Security.SECURE),
        *(Zone(f"{zone}.test", ("pdns.test",)) for zone in CHAINS),
    ]
    hosts = [Host("ns.test", ("127.0.0.2",)), Host("pdns.test", ("127.0.0.4",), program="")]
    with running(
        tmp_path, needs_tool, hosts=hosts, zones=zones, resolver_options="aggressive-nsec: yes"
    ) as network:
        server = needs_tool("pdns_server"), f"--config-dir={home}"

        def start() -> None:
            network.start("pdns", *server)
            network.wait_for("dig", "@127.0.0.4", "+short", "nsec.test", "SOA", shows="ns.nsec.")

        def restart() -> None:
            network.stop("pdns")
            start()
            network.restart_resolver()

        start()
        network.pdnsutil, network.restart = pdnsutil, restart
        yield network


def test_a_record_that_the_zone_denies_is_denied(cli, powerdns):
    done, items = powerdns.check_dns(cli)
    denied = {f"{label}.{zone}.test" for zone in CHAINS for label in (FIRST, SECOND)}
    denied -= {"first.plain.test", "second.plain.test"}  # resolvers go by signed denials alone
    assert done.status == 1
    assert {domain for domain, item in items.items() if item["verdict"] == "denied"} == denied
    assert {item["verdict"] for item in items.values()} == {"denied", "published"}
    assert "`pdnsutil rectify-zone nsec3.test`" in items["second.nsec3.test"]["reason"]
    # As Unbound says, asked for another name before (RFC 8020); BIND 9 also denies
    # second.nsec.test.
    powerdns.restart_resolver()
    for domain in ("first.nsec.test", "first.nsec3.test"):
        powerdns.run("dig", f"other._domainkey.{domain}", "TXT")
        assert "NXDOMAIN" in powerdns.run("dig", name_of(domain), "TXT").stdout
    for zone in CHAINS:
        powerdns.pdnsutil("rectify-zone", f"{zone}.test")
    powerdns.restart()
    done, items = powerdns.check_dns(cli)
    assert (done.status, set(verdicts(items).values())) == (0, {"published"})


def test_a_signed_answer_that_does_not_arrive_is_no_answer(cli, needs_tool, tmp_path):
    """It is too large for UDP, and TCP is closed; without the signature it would arrive."""
    values = register(cli, "large.test", "plain.test")
    hosts = [Host("ns.test", ("127.0.0.2",), also=("large.test", "plain.test"))]
    hosts.append(Host("odd.test", ("127.0.0.3",), program=""))
    zones = [
        Zone(domain, ("odd.test",), txt(name_of(domain), values[domain]), security=security)
        for domain, security in (
            ("large.test", Security.SECURE), ("plain.test", Security.INSECURE),
        )
    ]  # fmt: skip
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        arguments = (odd_servers, "127.0.0.2", "127.0.0.3=signed-udp-only")
        network.start("odd", sys.executable, *arguments)
        network.wait_for("cat", "odd.log", shows="ready")
        done, items = network.check_dns(cli)
        resolved = network.run("dig", name_of("large.test"), "TXT").stdout
    assert (done.status, items["plain.test"]["verdict"]) == (4, "published")
    assert (items["large.test"]["verdict"], "SERVFAIL" in resolved) == ("no answer", True)
    reason = "its answer over UDP is truncated; over TCP, nothing answers at that address and port"
    assert reason in items["large.test"]["servers"][0]["reason"]
