"""Keys of delegated domains: customers change their DNS once, and never again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from aging import let_pass
from delegation import Host, Zone
from network import Network, running

CUSTOMERS, AGENCY = "ns1.customers.test", "ns1.agency.test"
SHOP, SUB = "shop.test", "sub.test"
TARGET = "{selector}.{domain}.dkim.agency.test"
WILD, ANY = "{selector}.x.wild.test", "{selector}.any.test"
CONFIG = f"""
dns:
  - zones: [dkim.agency.test, wild.test, any.test, '_domainkey.*']
    provider: rfc2136
    server: 127.0.0.3
    key_file: tsig.key
    ttl: 60
    profiles: [sandbox]
delegation:
  - {{domains: [wild.many.test], selectors: 'w{{n}}', count: 4, target: '{WILD}'}}
  - {{domains: [{SHOP}, '*.many.test'], selectors: 'a{{n}}', count: 5, target: '{TARGET}'}}
  - {{domains: [any.test], selectors: 'a{{n}}', count: 1, target: '{ANY}'}}
  - {{domains: [nowhere.test], selectors: 'a{{n}}', count: 1, target: '{{selector}}.other.test'}}
  - {{domains: [{SUB}], selectors: 'a{{n}}', count: 5, ns: [{AGENCY}]}}
"""


# Another client has registered it.
TAKE_A4 = """
INSERT INTO registrations
SELECT sign_domain, 'a4', 'other', key_len, start_date, "default", enable, value, regist_date,
  private_key
FROM registrations WHERE selector = 'a1'
"""


# Without an answer, when the domain was in no pool yet.
ASKED_BEFORE = """
INSERT INTO open_request (account_id, sent_at, entries)
SELECT id, '2026-01-01T00:00:00+00:00', '[["sub.test", null]]' FROM account
"""


def aliases(domain: str, *selectors: str, target: str = TARGET) -> str:
    return "".join(
        f"{name}._domainkey.{domain}. CNAME {target.format(selector=name, domain=domain)}.\n"
        for name in selectors
    )


class Agency:
    """Someone who keeps the keys of customers in a zone of their own."""

    def __init__(self, cli, network: Network, zones: Path) -> None:
        self.cli = network.inside(cli)
        self.cli.environment = cli.environment | {"DKIMCTL_PROFILE": "sandbox"}
        self.cli.environment["DKIMCTL_CONFIG"] = cli.write("config.yaml", CONFIG)
        key = cli.home / "tsig.key"
        key.write_text(network.key_file.read_text())
        key.chmod(0o600)
        self._network, self._zones = network, zones

    def register(self, *domains: str, status: int = 0, words: tuple[str, ...] = ()):
        """The selector of each domain that is registered, and the outcome of each."""
        entries = json.dumps([{"sign_domain": domain, "key_len": 2048} for domain in domains])
        done = self.cli("register", *words, "--format", "json", "-", stdin=entries)
        assert done.status == status, f"{done.out}\n{done.err}"
        items = done.json["items"]
        return {
            item["sign_domain"]: (item.get("selector"), item["outcome"]) for item in items
        }, done

    def run(self, status: int = 0, *words: str) -> list[tuple[str, str, str]]:
        done = self.cli("rotate", "run", "--wait", "3s", "--format", "json", *words)
        assert done.status == status, f"{done.out}\n{done.err}"
        return [(each["selector"], each["step"], each["state"]) for each in done.json["items"]]

    def listed(self) -> list[dict[str, object]]:
        return self.cli("list", "--format", "json").json["items"]

    def published(self, domain: str, selector: str) -> bool:
        """As a verifier sees it."""
        name = f"{selector}._domainkey.{domain}"
        return "DKIM1" in self._network.run("dig", "+short", name, "TXT").stdout

    def customers_files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self._zones.iterdir()}


@pytest.fixture
def agency(cli, needs_tool, tmp_path) -> Iterator[Agency]:
    every = tuple(f"a{number}" for number in range(1, 6))
    hosts = [
        Host(CUSTOMERS, ("127.0.0.2",), "named"),
        Host(AGENCY, ("127.0.0.3",), "named", updates=True),
        Host("dead.test", ("127.0.0.9",), program=""),
    ]
    zones = [
        Zone(SHOP, (CUSTOMERS,), aliases(SHOP, *every)),
        Zone("late.many.test", (CUSTOMERS,), aliases("late.many.test", "a2")),
        Zone("wild.many.test", (CUSTOMERS,), aliases("wild.many.test", "w1", target=WILD)),
        Zone("nowhere.test", (CUSTOMERS,), aliases("nowhere.test", "a1", target="a1.other.test")),
        Zone("silent.many.test", ("dead.test",)),
        Zone(SUB, (CUSTOMERS,)),
        Zone(f"_domainkey.{SUB}", (AGENCY,)),
        Zone("left.many.test", (CUSTOMERS,), aliases("left.many.test", "a1")),
        Zone("dkim.agency.test", (AGENCY,), 'a1.left.many.test TXT "not a key"\n'),
        Zone("wild.test", (AGENCY,), "* A 192.0.2.1\n"),
        Zone("other.test", (CUSTOMERS,)),
        Zone("any.test", (AGENCY,), "* TXT hello\n" + aliases("any.test", "a1", target=ANY)),
    ]  # fmt: skip
    options = "cache-max-ttl: 0\n  cache-max-negative-ttl: 0"
    with running(
        tmp_path, needs_tool, hosts=hosts, zones=zones, validates=False, resolver_options=options
    ) as network:
        yield Agency(cli, network, tmp_path / CUSTOMERS)


def test_the_keys_of_a_customer_follow_each_other_without_a_change_of_their_dns(agency):
    before, both = agency.customers_files(), (SHOP, SUB)
    registered, _ = agency.register(*both)
    assert registered == dict.fromkeys(both, ("a1", "created"))
    assert agency.register(*both)[0] == dict.fromkeys(both, ("a1", "exists"))
    entries = json.dumps(
        [{"sign_domain": name, "key_len": 2048, "selector": "a1"} for name in both]
    )
    again = agency.cli("register", "--format", "zone", "-", stdin=entries)
    for for_dns in (agency.cli("show-dns", "--format", "zone", *both).out, again.out):
        assert f"\na1.{SHOP}.dkim.agency.test. 3600 IN TXT" in for_dns
        assert f"a1._domainkey.{SUB}. 3600 IN TXT" in for_dns
    assert agency.cli("publish", "--yes", "--wait", "5s").status == 0
    assert agency.cli("check-dns").status == 0
    assert agency.cli("publish", "--check-access").status == 0
    assert "no target has the zone" not in agency.cli("doctor").out
    for number in (1, 2):
        old, new = f"a{number}", f"a{number + 1}"
        let_pass(agency.cli.home, days=180)
        assert agency.cli("rotate").out.count(f"selector: {new}\n") == 2
        due = agency.run(1, "--dry-run")
        assert [each for each in due if each[1] == "register"] == [(new, "register", "due")] * 2
        assert agency.run() == [(new, "register", "done"), (new, "publish", "done")] * 2
        let_pass(agency.cli.home, days=22)
        assert agency.run() == [(old, "remove", "done")] * 2
        assert [agency.published(name, old) for name in both] == [False, False]
        assert [agency.published(name, new) for name in both] == [True, True]
        assert agency.cli("check-dns").status == 0
    asked = agency.cli("rotate", "run", "--verbose").err
    assert asked.count("127.0.0.2 UDP: TXT a3._domainkey.shop.test:") == 1
    assert agency.customers_files() == before


def test_what_could_not_be_published_is_not_registered_and_the_others_are(agency):
    domains = ("late", "bare", "wild", "left")
    names = [*(f"{name}.many.test" for name in domains), "nowhere.test", "any.test", SHOP]
    registered, done = agency.register(*names, status=1)
    assert registered == {
        names[0]: ("a2", "created"),
        SHOP: ("a1", "created"),
        **dict.fromkeys(names[1:6], (None, "blocked")),
    }
    for reason in (
        "a1._domainkey.bare.many.test is not delegated: its CNAME is missing (DNS has no zone",
        "end what a wildcard answers for x.wild.test",
        "a1.left.many.test.dkim.agency.test: it has a TXT record already",
        "a1.any.test: something answers although it has no record",
        "a1.other.test: no DNS target has its zone: add it to `dns`",
    ):
        assert reason in done.err
    assert agency.cli("register", "--domain", "left.many.test", "--selector", "z1").status == 0
    let_pass(agency.cli.home, days=180)
    done = agency.cli("rotate")
    assert done.out.count("selector: ") == 1
    assert "late.many.test gets no successor: a1._domainkey.late.many.test is not delegated" in (
        done.err
    )
    assert "left.many.test gets no successor" in done.err
    assert "; \n" not in done.err
    steps = agency.run(1)
    assert {("a2", "register", "blocked"), ("a2", "register", "done")} < {*steps}
    registered, _ = agency.register("silent.many.test", status=4)
    assert registered == {"silent.many.test": (None, "failed")}
    planned, _ = agency.register(*names, status=1, words=("--dry-run",))
    assert planned["bare.many.test"] == (None, "blocked")
    [ledger] = agency.cli.home.rglob("ledger.db")
    with contextlib.closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute(ASKED_BEFORE)
    assert agency.register(SUB, status=4)[0] == {SUB: (None, "unknown")}
    assert agency.register(SUB, words=("--retry-unknown",))[0] == {SUB: ("a1", "created")}


def test_a_pool_that_runs_out_is_told_in_time(agency):
    """Selectors that the ledger knows are spent, also those that were registered by name."""
    entries = [{"sign_domain": SHOP, "selector": f"a{number}"} for number in (1, 2)]
    assert agency.cli("register", "-", stdin=json.dumps(entries)).status == 0
    agency.cli("publish", "--yes", "--wait", "5s")
    let_pass(agency.cli.home, days=180)
    assert ("a3", "register", "done") in agency.run()
    assert f"2 selectors are left in the pool of {SHOP}\n" in agency.cli("rotate", "run").err
    [service] = agency.cli.home.rglob("sandbox.db")
    with contextlib.closing(sqlite3.connect(service)) as connection, connection:
        connection.execute(TAKE_A4)
    let_pass(agency.cli.home, days=180)
    assert [name for name, step, _ in agency.run() if step == "register"] == ["a5"]
    lefts = {key["selector"]: key["selectors_left"] for key in agency.listed()}
    assert (lefts["a3"], lefts["a5"]) == (None, 0)
    assert "no selector is left" in agency.cli("rotate", "run").out
    assert agency.cli("overview").status == 1
    metrics = agency.cli("check-dns", "--format", "prometheus").out
    assert 'dkimctl_selectors_left{profile="sandbox",sign_domain="shop.test"} 0.0' in metrics
    let_pass(agency.cli.home, days=200)
    assert not [each for each in agency.run(1) if each[1:] == ("register", "done")]


def test_the_run_that_takes_the_last_selector_says_that_none_is_left(agency):
    entries = [{"sign_domain": SUB, "selector": f"a{number}"} for number in range(1, 5)]
    assert agency.cli("register", "-", stdin=json.dumps(entries)).status == 0
    agency.cli("publish", "--yes", "--wait", "5s")
    waiting = agency.cli("rotate", "run", "--dry-run")
    assert (waiting.status, "1 selector is left in its pool" in waiting.out) == (1, True)
    let_pass(agency.cli.home, days=180)
    due = [each for each in agency.run(1, "--dry-run") if each[1] == "register"]
    assert due == [("a5", "register", "due")]
    done = agency.cli("rotate", "run", "--wait", "3s", "--format", "json")
    assert done.status == 1
    told = [each for each in done.json["items"] if each["step"] == "register"]
    assert [each["state"] for each in told] == ["blocked", "done"]
    assert {each["selector"] for each in told} == {"a5"}
    assert told[0]["reason"].startswith("no selector is left in its pool for a successor: raise")
