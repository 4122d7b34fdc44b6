"""The sandbox on a fresh machine: nothing configured, no network, no login."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import dns.rdatatype
import dns.zone
import pytest

from processes import Cli

EXAMPLE = Path(__file__).parents[2] / "domains.example.yaml"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A home with the example's domains in the sandbox, and the items that were registered."""
    cli = Cli(tmp_path_factory.mktemp("example"))
    done = cli("register", "--sandbox", EXAMPLE, "--format", "json")
    assert done.status == 0, done.err
    return cli.home, done.json["items"]


@pytest.fixture
def registered(cli, example):
    """A copy of that home, and the same items."""
    home, items = example
    shutil.copytree(home, cli.home, dirs_exist_ok=True)
    return items


def test_a_second_run_sends_nothing_and_shows_the_same_selectors_and_keys(cli, registered):
    again = cli("register", "--sandbox", EXAMPLE, "--format", "json", "--verbose")
    assert again.status == 0
    assert "POST" not in again.err
    items = again.json["items"]
    assert {item["outcome"] for item in registered} == {"created"}
    assert {item["outcome"] for item in items} == {"exists"}
    for first, second in zip(registered, items, strict=True):
        assert {**first, "outcome": ""} == {**second, "outcome": ""}


def test_it_does_not_count_for_the_metrics_of_another_program(cli):
    cli.at_start("")  # a process of its own, since the variable counts when it starts
    done = cli("register", "--sandbox", EXAMPLE, env={"PROMETHEUS_MULTIPROC_DIR": "no/such"})
    assert (done.status, "Traceback" in done.err) == (0, False)


@pytest.mark.parametrize("command", [["register", EXAMPLE], ["show-dns"]])
def test_the_table_has_what_the_service_answered_and_when(cli, registered, command):
    day = registered[0]["regist_date"][:10]
    table = [*command, "--sandbox", "--format", "table"]
    known = cli(*table, "--color", "always").out
    assert known.count(f"\x1b[2m201 {day}\x1b[0m  ") == len(registered), "dimmed: of another run"
    assert cli(*table, "--wide").out.count(f"  201 created {day}  ") == len(registered)
    again = cli("register", EXAMPLE, "--sandbox", "--refresh", "--format", "table").out
    assert len(re.findall(r" exists +409  +2048 ", again)) == len(registered)


def test_show_dns_counts_records(cli, registered):
    assert cli("show-dns", "--sandbox").err == "dkimctl: 3 records\n"
    assert cli("show-dns", "--sandbox", "news.example.com").err == "dkimctl: 1 record\n"
    saved = cli("show-dns", "--sandbox", "--format", "json").out
    assert cli("show-dns", "--from", "-", stdin=saved).err == "dkimctl: 3 records\n"


def test_a_plan_sends_and_writes_nothing(cli):
    done = cli("register", "--dry-run", "--sandbox", EXAMPLE, "--format", "json")
    assert done.status == 0
    assert {item["outcome"] for item in done.json["items"]} == {"pending"}
    assert {item["result"] for item in done.json["items"]} == {None}
    assert list(cli.home.rglob("*.db")) == []


def test_zone_output_is_the_default_in_a_pipe_and_dnspython_reads_the_exact_values(cli, registered):
    done = cli("show-dns", "--sandbox")
    assert done.status == 0
    assert sorted(done.out.split("\n;")) == sorted(
        cli("register", "--sandbox", EXAMPLE).out.split("\n;")
    )
    assert done.out == cli("show-dns", "--sandbox", "--format", "zone").out
    for item in registered:
        zone = dns.zone.from_text(
            "@ 300 SOA . . 1 1 1 1 1\n@ 300 NS .\n" + done.out,
            origin=item["sign_domain"],
            check_origin=False,
        )
        (data,) = zone.find_rdataset(f"{item['selector']}._domainkey", dns.rdatatype.TXT)
        assert b"".join(data.strings).decode() == item["setting_values"]["value"]


def test_value_output_is_the_bare_value(cli, registered):
    item = registered[0]
    done = cli("show-dns", "--sandbox", item["sign_domain"], "--format", "value")
    assert done.out == item["setting_values"]["value"] + "\n"
    several = cli("show-dns", "--sandbox", "--format", "value").out.splitlines()
    assert sorted(several) == sorted(
        f"{item['setting_values']['fqdn']}\t{item['setting_values']['value']}"
        for item in registered
    )


def test_a_selection_without_matches_is_1(cli, registered):
    done = cli("show-dns", "--sandbox", "absent.example")
    assert (done.status, done.out) == (1, "")
    assert "absent.example" in done.err
    partly = cli("show-dns", "--sandbox", "absent.example", registered[0]["sign_domain"])
    assert partly.status == 1
    assert "absent.example is not registered" in partly.err
    assert registered[0]["setting_values"]["fqdn"] in partly.out


def test_show_dns_before_anything_is_registered_says_what_to_do(cli):
    done = cli("show-dns", "--sandbox")
    assert (done.status, done.out) == (1, "")
    assert "dkimctl register" in done.err
    assert list(cli.home.rglob("*.db")) == []


def test_without_the_service_extra_the_sandbox_says_what_to_install(cli):
    blocked = cli.home / "blocked"
    for name in ("falcon", "sqlalchemy"):
        package = blocked / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    environment = {"PYTHONPATH": str(blocked)}
    for words in (("register", "--sandbox", EXAMPLE), ("serve",), ("service", "client", "list")):
        done = cli(*words, env=environment)
        assert done.status == 2
        assert "pip install '.[service]'" in done.err


def test_private_keys_are_encrypted_with_a_passphrase(cli):
    passphrase = {"DKIMCTL_SERVICE_PASSPHRASE": "open sesame"}
    words = ("register", "--sandbox", "-", "--format", "json")
    first = cli(*words, stdin="[example.com]", env=passphrase)
    assert first.status == 0, first.err
    (data,) = cli.home.rglob("sandbox.db")
    assert b"BEGIN PRIVATE KEY" not in data.read_bytes()
    for env, words_of_error in (
        ({}, "a passphrase"),
        ({"DKIMCTL_SERVICE_PASSPHRASE": "x"}, "another"),
    ):
        done = cli(*words, stdin="[example.net]", env=env)
        assert (done.status, done.out) == (2, "")
        assert f"encrypted with {words_of_error}" in done.err
        assert "open sesame" not in done.err
    again = cli(*words, stdin="[example.com]", env=passphrase)
    assert again.json["items"][0]["outcome"] == "exists"


@pytest.mark.parametrize("passphrase", [b"\xff open sesame", b"open sesame" * 94])
def test_a_passphrase_is_octets_of_any_number(cli, passphrase):
    words = ("register", "--sandbox", "-", "--refresh", "--format", "json")
    for outcome in ("created", "exists"):
        environment = {"DKIMCTL_SERVICE_PASSPHRASE": os.fsdecode(passphrase)}
        done = cli(*words, stdin="[example.com]", env=environment)
        assert done.json["items"][0]["outcome"] == outcome, done.err
