"""The sheet for the owner of the DNS, with real name servers."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3

import pytest

from delegation import Host, Zone
from dkimctl.dns.verdicts import Verdict
from dkimctl.handoff.providers import read_yaml
from dkimctl.handoff.sheet import Language
from dkimctl.settings.values import SANDBOX_FIXED
from documents import example
from network import running
from portfolio import Portfolio
from published import name_of, register, txt

DOMAINS = ("example.com", "mail.example.com", "sub.example.com", "aws.test", "own.test")
HOSTS = [
    Host("ada.ns.cloudflare.com", ("127.0.0.2",), "nsd"),
    Host("bob.ns.cloudflare.com", ("127.0.0.3",), "knotd"),
    Host("ns-1.awsdns-01.com", ("127.0.0.4",), "named"),
    Host("ns.own.test", ("127.0.0.5",), "nsd"),
    Host("ns.silent.test", ("127.0.0.6",), program=""),
]
ZONES = [
    Zone("example.com", ("ada.ns.cloudflare.com", "bob.ns.cloudflare.com")),
    Zone("sub.example.com", ("ns-1.awsdns-01.com",)),
    Zone("aws.test", ("ns-1.awsdns-01.com",)),
    Zone(
        "own.test",
        ("ns.own.test", "ada.ns.cloudflare.com"),
        '@ MX 10 mx\nmx A 192.0.2.3\n_dmarc TXT "v=DMARC1; rua=mailto:dmarc@own.test"\n',
    ),
    Zone("led.test", ("ns.own.test",), "s1._domainkey CNAME key.aws.test.\n"),
    Zone("wild.test", ("ns.own.test",), "* A 192.0.2.1\n* MX 10 mail\nown A 192.0.2.9\n"),
    Zone("silent.test", ("ns.silent.test",)),
    Zone("cloudflare.com", ("ns.own.test",)),
    Zone("awsdns-01.com", ("ns.own.test",)),
]


@pytest.fixture
def inside(cli, needs_tool, tmp_path):
    """The command line in a network with these zones."""
    with running(tmp_path, needs_tool, hosts=HOSTS, zones=ZONES) as network:
        yield network.inside(cli)


def test_zones_and_providers_are_found_in_dns(cli, inside):
    values = register(cli, *DOMAINS)
    done = inside("handoff", "--sandbox", "--format", "json")
    assert done.status == 0, done.err
    zones = {zone["zone"]: zone for zone in done.json["zones"]}
    assert {name: zone["provider"] for name, zone in zones.items()} == {
        "example.com": "cloudflare",
        "sub.example.com": "route53",
        "aws.test": "route53",
        "own.test": None,
    }
    assert zones["example.com"]["name_servers"] == list(ZONES[0].hosts)
    hosts = {each["fqdn"]: each["host"] for zone in zones.values() for each in zone["records"]}
    assert hosts == {
        name_of("example.com"): "s1._domainkey",
        name_of("mail.example.com"): "s1._domainkey.mail",
        name_of("sub.example.com"): "s1._domainkey",
        name_of("aws.test"): "s1._domainkey",
        name_of("own.test"): "s1._domainkey",
    }
    shown = {each["sign_domain"]: each for zone in zones.values() for each in zone["records"]}
    assert {domain: each["value"] for domain, each in shown.items()} == values
    assert shown["mail.example.com"]["enter"] == "whole"
    assert shown["aws.test"]["enter"] == "strings"
    notes = " ".join(inside("handoff", "--sandbox", "own.test", "aws.test").err.split())
    assert "DMARC: reports about 1 domain (own.test) go to dmarc@own.test" in notes
    assert "receivers send no reports about 1 domain (aws.test); write" in notes


ADD_FIRST = [
    f"{name}. 60 IN {data}"
    for name in ("shop.wild.test", "*.shop.wild.test")
    for data in ("A 192.0.2.1", "MX 10 mail.wild.test.")
]


def test_what_to_add_where_a_wildcard_answers_is_on_the_sheet_and_told(cli, inside):
    register(cli, "shop.wild.test", "own.wild.test", "wild.test")
    for language, fmt in itertools.product(Language, ("txt", "markdown", "html")):
        done = inside("handoff", "--sandbox", "-f", fmt, "--language", language)
        lines = done.out.replace('<code class="value">', "").replace("</code>", "").splitlines()
        first = lines.index(ADD_FIRST[0])
        assert (done.status, lines[first : first + 4]) == (0, ADD_FIRST), done.err
        texts = read_yaml(f"texts/{language}.yaml")
        assert texts["harmless"] not in done.out.replace("\n", " ")
    assert f"first add {'; '.join(ADD_FIRST)}" in done.err
    sheet = inside("handoff", "--sandbox", "--format", "json").json
    records = {each["fqdn"]: each for each in sheet["zones"][0]["records"]}
    assert {name_of("shop.wild.test"): ADD_FIRST} == {
        name: record["add_first"] for name, record in records.items() if record["add_first"]
    }
    # Nothing is claimed that was not asked, and nothing said where there is nothing to lose.
    for words, key in (("--zone", "wild.test"), "harmless_unless"), (("wild.test",), "harmless"):
        done = inside("handoff", "--sandbox", "--format", "html", *words)
        assert read_yaml("texts/en.yaml")[key] in done.out
        assert "first add" not in done.err

    checked = inside("check-dns", "--sandbox")
    assert f"{name_of('shop.wild.test')} will end what a wildcard answers" in checked.err
    assert f"first add {'; '.join(ADD_FIRST)}" in checked.err
    assert "own.wild.test will" not in checked.err
    marks = {"zone": ";", "nsupdate": ";", "octodns": "#", "dnscontrol": "//", "powerdns": ""}
    for fmt, mark in marks.items():
        shown = inside("show-dns", "--sandbox", "--find-zones", "--format", fmt)
        assert all((f"{mark} {line}\n" in shown.out) is bool(mark) for line in ADD_FIRST)
        assert ADD_FIRST[-1] in shown.err


def test_the_record_of_an_alias_is_on_the_sheet_where_it_leads(cli, inside):
    register(cli, "led.test")
    done = inside("handoff", "--sandbox", "--format", "json")
    (zone,) = done.json["zones"]
    (record,) = zone["records"]
    assert (done.status, zone["zone"], record["fqdn"]) == (0, "aws.test", "key.aws.test")
    assert "s1._domainkey.led.test is an alias (CNAME)" in done.err
    assert "at key.aws.test (DNS now: missing)" in done.err


def test_a_sheet_is_written_although_dns_does_not_answer(cli, inside):
    values = register(cli, "example.com", "silent.test", "nowhere.invalid")
    done = inside("handoff", "--sandbox", "--output", "sheet.html")
    assert done.status == 4, done.err
    assert "the zone of s1._domainkey.silent.test could not be found" in done.err
    assert "DNS has no zone for it" in done.err
    page = (cli.home / "sheet.html").read_text(encoding="utf-8")
    for text in (*values.values(), name_of("silent.test")):
        assert f">{text}</code>" in page
    assert "DNS did not answer" in page
    assert "DNS has no zone" in page
    done = inside("handoff", "--sandbox", "nowhere.invalid")
    assert (done.status, name_of("nowhere.invalid") in done.out) == (1, True)


def test_the_suffix_of_the_file_tells_the_format(cli):
    [value] = register(cli, "example.com").values()
    starts = {
        "sheet.html": "<!doctype html>", "sheet.HTM": "<!doctype html>", "sheet.md": "# DNS",
        "sheet.txt": "DNS records to add\n===", "sheet": "DNS records to add\n===",
        "sheet.json": '{"made_at"',
    }  # fmt: skip
    for name, start in starts.items():
        done = cli("handoff", "--sandbox", "--zone", "example.com", "--output", name)
        assert (done.status, done.out) == (0, ""), done.err
        assert f"wrote {name} (1 record in 1 zone)" in done.err
        text = (cli.home / name).read_text(encoding="utf-8")
        assert text.startswith(start)
        assert value in text
    done = cli("handoff", "--sandbox", "--zone", "example.com", "--format", "markdown")
    assert done.out.startswith("# DNS records to add")


def test_with_zones_given_dns_is_not_asked(cli):
    register(cli, "example.com", "mail.example.com")
    words = ("--zone", "example.com", "--zone", "mail.example.com", "--verbose")
    done = cli("handoff", "--sandbox", "--format", "json", *words)
    assert (done.status, " UDP: " in done.err) == (0, False)
    assert [zone["zone"] for zone in done.json["zones"]] == ["example.com", "mail.example.com"]
    assert {zone["trouble"] for zone in done.json["zones"]} == {None}


def test_a_name_outside_the_zones_given_is_a_usage_error(cli):
    register(cli, "example.com")
    done = cli("handoff", "--sandbox", "--zone", "example.net", "--output", "sheet.html")
    assert (done.status, (cli.home / "sheet.html").exists()) == (2, False)
    assert "not in the zone example.net: s1._domainkey.example.com" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--provider", "acme"), 'unknown provider "acme"'),
        (("--language", "fr"), "--language"),
        (("--language", "ja", "--format", "json"), "--language has no effect with --format json"),
        (("--contact", "x" * 201), "in --contact: the text has 201 characters"),
        (
            ("--assume-successors",),
            "--assume-successors has no effect without --retired\nhint: leave it",
        ),
        (("--format", "zone"), "`dkimctl show-dns --sandbox --format zone`"),
        (("--retired", "--delegate"), "--delegate cannot be combined with --retired"),
        (
            ("--delegate", "--format", "zone", "--language", "en"),
            "has no effect with --format zone",
        ),
        (("--delegate", "--format", "zone", "--contact", "x"), "has no effect with --format zone"),
        (("--delegate", "--format", "terraform", "--provider", "ovh"), "takes route53, "),
        (("--delegate", "--output", "x.zone"), "no `delegation` in "),
        (("--output", "dns.PDF"), "for PDF, print the .html in a browser"),
        (("--output", ""), "in --output: the file name is empty"),
    ],
)
def test_invalid_options_are_usage_errors(cli, words, message):
    register(cli, "example.com")
    done = cli("handoff", "--sandbox", "--zone", "example.com", *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert "defect" not in done.err


def test_a_record_that_cannot_be_used_is_left_out(cli):
    register(cli, "example.com", "example.net")
    done = cli("handoff", "--sandbox", "example.com", "example.org", "--zone", "example.com")
    assert (done.status, "example.org is not registered" in done.err) == (1, True)
    [path] = cli.home.rglob("ledger.db")
    with contextlib.closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute("UPDATE registration SET value = 'x' WHERE sign_domain = 'example.net'")
    words = ("--zone", "example.com", "--zone", "example.net")
    done = cli("handoff", "--sandbox", *words)
    assert (done.status, "example.net (selector s1): unusable" in done.err) == (1, True)
    assert name_of("example.com") in done.out
    assert "example.net" not in done.out
    done = cli("handoff", "--sandbox", "example.net", *words, "--output", "sheet.html")
    assert (done.status, (cli.home / "sheet.html").exists()) == (1, False)


@pytest.fixture
def replaced(cli, key_records):
    """Two domains with two keys each; that of old.example took over long ago."""
    account = {name: SANDBOX_FIXED[name] for name in ("base_url", "client_id")}
    key = key_records[2048].partition("p=")[2]
    portfolio = Portfolio(cli.home / "state", key, account=account)
    seen = dict.fromkeys((20, 0.2), Verdict.PUBLISHED)
    for domain, starts in (("old.example", 18), ("new.example", -18)):
        portfolio.add(domain, "s1", age=200, looks=seen)
        portfolio.add(domain, "s2", age=25, starts=starts, looks=seen, replaces="s1")
    portfolio.save()
    cli.environment |= {
        "DKIMCTL_PROFILE": "sandbox", "DKIMCTL_STATE_DIR": str(cli.home / "state")
    }  # fmt: skip


def fqdns(document) -> set[str]:
    return {each["fqdn"] for zone in document["zones"] for each in zone["records"]}


def test_keys_that_have_been_replaced_are_left_out(cli, replaced):
    done = cli("handoff", "--zone", "example", "--format", "json")
    assert (done.status, done.json["action"]) == (0, "add")
    assert fqdns(done.json) == {
        "s2._domainkey.old.example", "s1._domainkey.new.example", "s2._domainkey.new.example",
    }  # fmt: skip
    done = cli("handoff", "--zone", "example", "old.example")
    assert "left out, since they have been replaced: 1 (old.example (selector s1))" in done.err
    assert "dkimctl handoff --sandbox --retired" in done.err
    assert "1 record was seen published already, at the last look at DNS (" in done.err


def test_records_to_delete_need_proof_from_dns(cli, needs_tool, tmp_path, replaced, key_records):
    value = "v=DKIM1; k=rsa; p=" + key_records[2048].partition("p=")[2]
    words = ("handoff", "--retired", "old.example", "--format", "json")
    for records, status, shown in (
        (txt("s2._domainkey.old.example", value), 0, {"s1._domainkey.old.example"}),
        ("", 1, set()),
    ):
        (tmp_path / str(status)).mkdir()
        zones = [Zone("old.example", ("ns.own.test",), records)]
        with running(tmp_path / str(status), needs_tool, hosts=HOSTS[3:4], zones=zones) as network:
            done = network.inside(cli)(*words)
        assert done.status == status, done.err
        assert (done.json["action"], fqdns(done.json)) == ("delete", shown)


def test_a_panel_that_cannot_take_the_value_is_named(cli):
    register(cli, "example.com")
    words = ("--zone", "example.com", "--provider", "sakura")
    done = cli("handoff", "--sandbox", *words)
    assert "the panel takes at most 255" in done.out
    assert "longer than the DNS provider's panel takes: 1 (example.com (selector s1))" in done.err


def test_the_example_in_the_docs(cli, shell):
    values = register(cli, "example.com")
    shell(example("--contact"), {"DKIMCTL_PROFILE": "sandbox"})
    pages = [(cli.home / name).read_text(encoding="utf-8") for name in ("dns.html", "dns-ja.html")]
    for page in pages:
        assert f">{values['example.com']}</code>" in page
    assert "mail@example.net" in pages[0]
    assert 'lang="ja"' in pages[1]
    document = json.loads((cli.home / "dns.json").read_text())
    assert document["zones"][0]["provider"] == "route53"
