"""Delegated selectors: what owners of domains enter once, and whether DNS has it."""

from __future__ import annotations

import csv
import io
import subprocess

import pytest

from delegation import Host, Zone
from documents import example
from network import running

TARGET = "{selector}.{domain}.dkim.agency.test"
CONFIG = f"""
delegation:
  - domains: ['*.customers.test', shop.test]
    selectors: a{{n}}
    count: 5
    target: '{TARGET}'
  - domains: [sub.test, own.test, part.test, none.test]
    selectors: d{{n}}
    count: 3
    ns: [ns1.agency.test, ns2.agency.test]
"""


def alias(domain: str, number: int, to: str = TARGET) -> str:
    target = to.format(selector=f"a{number}", domain=domain)
    return f"a{number}._domainkey.{domain}. CNAME {target}.\n"


@pytest.fixture
def network(cli, needs_tool, tmp_path):
    """Customers' zones; those of shop.test and sub.test have what `handoff --delegate` writes."""
    (cli.home / "dkimctl.yaml").write_text(CONFIG)
    handoff = ("handoff", "--sandbox", "--config", "dkimctl.yaml", "--delegate", "--format", "zone")
    full, both = (cli(*handoff, domain).out for domain in ("shop.test", "sub.test"))
    mixed = alias("mixed.customers.test", 1) + alias("mixed.customers.test", 2)
    mixed += alias("mixed.customers.test", 4, "{selector}.old.test")
    mixed += 'a5._domainkey.mixed.customers.test. TXT "v=DKIM1; p="\n'
    to = "_domainkey.{}. NS {}\n".format
    hosts = [
        Host("ns1.test", ("127.0.0.2",), "named", updates=True),
        Host("ns2.test", ("127.0.0.3",), "nsd"),
        Host("dead.test", ("127.0.0.9",), program=""),
    ]
    zones = [
        Zone("shop.test", ("ns1.test", "ns2.test"), full),
        Zone("mixed.customers.test", ("ns1.test", "ns2.test"), mixed),
        Zone("silent.customers.test", ("dead.test",)),
        Zone("sub.test", ("ns1.test",), both),
        Zone("own.test", ("ns2.test",), to("own.test", "ns9.own.test.")),
        Zone("part.test", ("ns2.test",), to("part.test", "ns1.agency.test.")),
        Zone("none.test", ("ns1.test",)),
        Zone("late.customers.test", ("ns1.test",), "a1._domainkey CNAME x.old.test.\n"),
    ]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


@pytest.fixture
def check(cli, network):
    inside = network.inside(cli)
    return lambda *words: inside(
        *("check-dns", "--sandbox", "--config", "dkimctl.yaml", "--delegation"), *words
    )


def test_each_selector_is_right_missing_elsewhere_or_unknown(check):
    domains = ("shop.test", "mixed.customers.test", "silent.customers.test", "new.customers.test")
    done = check("--format", "json", *domains, "sub.test", "own.test", "part.test", "none.test")
    assert done.status == 1
    states: dict[str, list[str]] = {}
    for item in done.json["items"]:
        states.setdefault(item["sign_domain"], []).extend([item["state"]] * len(item["selectors"]))
    assert states == {
        "shop.test": ["right"] * 5,
        "mixed.customers.test": ["right", "right", "missing", "elsewhere", "elsewhere"],
        "silent.customers.test": ["unknown"] * 5,
        "new.customers.test": ["missing"] * 5,
        "sub.test": ["right"] * 3,
        "own.test": ["elsewhere"] * 3,
        "part.test": ["missing"] * 3,
        "none.test": ["missing"] * 3,
    }


def test_the_table_groups_selectors_and_says_what_comes_next(check):
    done = check("mixed.customers.test", "own.test")
    assert done.status == 1
    assert (
        done.out
        == """\
DOMAIN                SELECTORS  TYPE   IN DNS
mixed.customers.test  a4         CNAME  elsewhere
  leads to a4.old.test in place of a4.mixed.customers.test.dkim.agency.test
mixed.customers.test  a5         CNAME  elsewhere
  it has a TXT record: delete it, since nothing else may be beside a CNAME
own.test              d1 to d3   NS     elsewhere
  leads to ns9.own.test in place of ns1.agency.test, ns2.agency.test
mixed.customers.test  a3         CNAME  missing
mixed.customers.test  a1, a2     CNAME  right
"""
    )
    assert "handoff --sandbox --config dkimctl.yaml mixed.customers.test own.test" in done.err
    done = check("silent.customers.test", "shop.test", "--format", "csv")
    assert (done.status, "to ask again: `dkimctl check-dns" in done.err) == (4, True)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["state"] for row in rows] == ["unknown"] * 5 + ["right"] * 5
    assert "unknown at dead.test (127.0.0.9)" in rows[0]["reason"]


def test_nsupdate_adds_them_and_replaces_what_led_elsewhere(cli, network, check):
    words = (
        "handoff",
        "--sandbox",
        "--config",
        "dkimctl.yaml",
        "--delegate",
        "--format",
        "nsupdate",
    )
    for domain in ("late.customers.test", "none.test"):
        assert check(domain).status == 1
        script = cli(*words, "--zone", domain, domain).out
        done = network.run("nsupdate", "-k", str(network.key_file), stdin=script)
        assert (done.returncode, done.stderr) == (0, "")
        assert check(domain).status == 0


def test_the_zone_is_the_customers_although_the_names_lead_elsewhere_already(cli, network):
    handoff = ("handoff", "--sandbox", "--config", "dkimctl.yaml", "--delegate", "--format")
    done = network.inside(cli)(*handoff, "json", "shop.test", "sub.test")
    assert done.status == 0, done.err
    [shop, sub] = done.json["zones"]
    assert (shop["zone"], sub["zone"]) == ("shop.test", "sub.test")
    assert shop["records"][4]["host"] == "a5._domainkey"
    records = [(each["host"], each["type"], each["value"]) for each in sub["records"]]
    assert records == [("_domainkey", "NS", f"ns{n}.agency.test") for n in (1, 2)]
    done = network.inside(cli)(*handoff, "octodns", "sub.test")
    assert (done.status, "ns2.agency.test." in done.out) == (0, True)


def test_known_domains_are_those_of_the_ledger_and_of_the_config(cli, check):
    specs = cli.write("specs.yaml", "[{sign_domain: mixed.customers.test, selector: s1}]")
    assert cli("register", "--sandbox", specs).status == 0
    done = check("--format", "json")
    assert {item["sign_domain"] for item in done.json["items"]} == {
        *("mixed.customers.test", "shop.test", "sub.test", "own.test", "part.test", "none.test")
    }
    done = check("sh*.test")
    assert (done.status, done.out.split()[-4:]) == (0, ["to", "a5", "CNAME", "right"])
    assert check("*.nowhere", "shop.test").status == 1
    done = check("other.test")
    assert done.status == 2
    assert "- {domains: [other.test], selectors: 'a{n}', count: 24" in done.err


def test_the_example_in_the_docs(cli, shell, needs_tool):
    cli.write("config.yaml", example("dkim.agency.example", "yaml"))
    variables = {"DKIMCTL_PROFILE": "sandbox", "DKIMCTL_CONFIG": "config.yaml"}
    shell(example("handoff shop.example --delegate"), variables)
    assert "a5.shop.example.dkim.agency.example.`" in (cli.home / "shop.md").read_text("utf-8")
    lines = (cli.home / "shop.zone").read_text()
    assert (cli.home / "shop.example.yaml").read_text().count("type: CNAME") == 24
    zone = cli.write(
        "zone", f"$TTL 60\n@ SOA ns.test. admin.test. 1 1 1 1 1\n@ NS ns.test.\n{lines}"
    )
    subprocess.run([needs_tool("named-checkzone"), "shop.example", zone], check=True, cwd=cli.home)
