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
    late = "a1._domainkey CNAME x.old.test.\n"  # and one whose target has no final dot
    late += alias("late.customers.test", 2).replace("test.\n", "test\n")
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
        Zone("late.customers.test", ("ns1.test",), late),
    ]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        yield network


@pytest.fixture
def check(cli, network):
    inside = network.inside(cli)
    return lambda *words, **more: inside(
        *("check-dns", "--sandbox", "--config", "dkimctl.yaml", "--delegation"), *words, **more
    )


def test_each_delegation_has_a_verdict(check):
    domains = ("shop.test", "mixed.customers.test", "silent.customers.test", "new.customers.test")
    done = check("--format", "json", *domains, "sub.test", "own.test", "part.test", "none.test")
    assert done.status == 1
    verdicts: dict[str, list[str]] = {}
    for item in done.json["items"]:
        verdicts.setdefault(item["sign_domain"], []).append(item["verdict"])
    assert verdicts == {
        "shop.test": ["published"] * 5,
        "mixed.customers.test": ["published", "published", "missing", "mismatch", "mismatch"],
        "silent.customers.test": ["no answer"] * 5,
        "new.customers.test": ["missing"] * 5,
        "sub.test": ["published"],
        "own.test": ["mismatch"],
        "part.test": ["missing"],
        "none.test": ["missing"],
    }


def test_the_table_has_the_reasons_and_the_summary_the_next_step(check):
    done = check("mixed.customers.test", "own.test")
    assert done.status == 1
    assert (
        done.out
        == """\
DOMAIN                SELECTOR  IN DNS
mixed.customers.test  a3        missing
mixed.customers.test  a4        mismatch
  it leads to a4.old.test, not to a4.mixed.customers.test.dkim.agency.test
mixed.customers.test  a5        mismatch
  it has a TXT record: delete it, since nothing else may be beside a CNAME
own.test              all       mismatch
  it leads to ns9.own.test, not to ns1.agency.test, ns2.agency.test
mixed.customers.test  a1        published
mixed.customers.test  a2        published
"""
    )
    assert "handoff --sandbox --config dkimctl.yaml mixed.customers.test own.test" in done.err
    long = check(f"{'long.' * 15}customers.test", env={"COLUMNS": "80"})
    assert (long.status, long.out.count("missing")) == (1, 5), long.err
    longer = check(f"{'long.' * 44}customers.test")
    assert (longer.status, "more than 253 octets" in longer.err) == (2, True)
    done = check("silent.customers.test", "shop.test", "--format", "csv")
    assert done.status == 4
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["verdict"] for row in rows] == ["no answer"] * 5 + ["published"] * 5
    assert "dead.test (127.0.0.9)" in rows[0]["reason"]


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
        done = check(domain)
        assert (done.status, "a dot" in done.out) == (1, domain != "none.test"), done.out
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
    assert (done.status, done.out.count(" published\n")) == (0, 5)
    assert check("*.nowhere", "shop.test").status == 1
    done = check("other.test")
    assert done.status == 2
    assert "dkimctl.yaml has other.test" in done.err


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
