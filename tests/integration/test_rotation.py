"""docs/rotation.md and docs/check-dns.md, day by day: a faked date and a network of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from delegation import Host, Zone
from documents import example
from network import Network, running

SPECS = """
defaults: {key_len: 2048, start_date: 2027-01-04T00:00+00:00}
domains:
- {sign_domain: a.example.com, selector: s1}
- {sign_domain: b.example.com, selector: s1}
"""
# Only dkimctl gets another date: signed updates are refused if the clocks differ.
WRAPPER = """#!/bin/sh
exec {faketime} -f "$TODAY" {python} -m dkimctl "$@"
"""
PUBLISH = """
dkimctl show-dns --format nsupdate --output add.nsupdate
{ echo "server $PRIMARY"; cat add.nsupdate; } | nsupdate -k "$KEY_FILE"
"""


@pytest.fixture
def network(needs_tool, tmp_path):
    host = Host("ns1.test", ("127.0.0.2",), "named", updates=True)
    zone = Zone("example.com", ("ns1.test",), 'kept TXT "as it was"\n')
    with running(tmp_path, needs_tool, hosts=[host], zones=[zone]) as network:
        yield network


@pytest.fixture
def on(cli, network, needs_tool):
    """Run a block of the docs on a day; fails with what it said if it does not end with 0."""
    tool = cli.home / "bin" / "dkimctl"
    tool.parent.mkdir()
    tool.write_text(WRAPPER.format(faketime=needs_tool("faketime"), python=sys.executable))
    tool.chmod(0o755)
    needs_tool("nsupdate")
    env = cli.environment | {
        "PATH": f"{tool.parent}:{cli.environment['PATH']}",
        "DKIMCTL_PROFILE": "sandbox",
        "PRIMARY": "127.0.0.2",
        "PRIMARY_IP": "127.0.0.2",
        "KEY_FILE": str(network.key_file),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "TZ": "UTC",
    }

    def run(day: str, block: str) -> subprocess.CompletedProcess[str]:
        bash = (needs_tool("bash"), "-euo", "pipefail", "-c", block)
        done = subprocess.run(
            [*network.prefix(cli.home), *bash], env=env | {"TODAY": f"{day} 10:00:00"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def names(network):
    """Which of the names of this test have TXT records."""

    def names() -> set[str]:
        wanted = [
            f"{selector}._domainkey.{domain}.example.com"
            for domain in "ab"
            for selector in ("s1", "s20270701")
        ]
        return {name for name in wanted if ask(network, name)}

    return names


def ask(network: Network, name: str) -> str:
    return network.run("dig", "@127.0.0.2", "+short", name, "TXT").stdout


def test_from_the_first_key_to_its_removal(cli, on, names, network):
    cli.write("domains.yaml", SPECS)
    rotation, retirement = example("rotate --older-than"), example("rotate --retired")

    on("2027-01-01", f"dkimctl register domains.yaml\n{PUBLISH}\ndkimctl check-dns")
    assert names() == {f"s1._domainkey.{domain}.example.com" for domain in "ab"}
    on("2027-06-29", "dkimctl rotate > early.yaml && dkimctl register early.yaml")
    assert (cli.home / "early.yaml").read_text().endswith("[]\n")

    done = on("2027-07-01", rotation)
    assert "created 2" in done.stderr
    assert "published 2" in done.stdout + done.stderr
    assert len(names()) == 4
    again = on("2027-07-01", "dkimctl rotate --older-than 180d | dkimctl register -")
    assert "nothing is due" in again.stderr
    # The result has both keys of each domain.
    table = on("2027-07-02", "dkimctl check-dns --format json").stdout
    assert {item["verdict"] for item in json.loads(table)["items"]} == {"published"}
    assert len(json.loads(table)["items"]) == 4

    early = on("2027-07-17", "dkimctl rotate --retired --format json")
    assert json.loads(early.stdout)["items"] == []
    with pytest.raises(AssertionError, match="none of the 4 selected registrations is retired"):
        on("2027-07-17", "dkimctl ledger forget '*'")

    on("2027-07-19", retirement.rpartition(" &&\n")[0])
    assert names() == {f"s20270701._domainkey.{domain}.example.com" for domain in "ab"}
    assert "as it was" in ask(network, "kept.example.com")
    left = on("2027-07-19", "dkimctl check-dns --format json")
    verdicts = [item["verdict"] for item in json.loads(left.stdout)["items"]]
    assert verdicts == ["retired", "published"] * 2
    assert "signing now" not in left.stderr

    on("2027-07-20", retirement.rpartition(" &&\n")[2])
    left = on("2027-07-20", "dkimctl check-dns --format json")
    assert {item["selector"] for item in json.loads(left.stdout)["items"]} == {"s20270701"}

    on("2027-07-20", example("dkimctl ledger import"))
    again = on("2027-07-20", "dkimctl check-dns --format json")
    verdicts = [item["verdict"] for item in json.loads(again.stdout)["items"]]
    assert verdicts == ["retired", "published"] * 2


def test_a_successor_that_vanished_keeps_the_old_key(cli, on, names, network):
    """Its record was seen for weeks, and then the zone was restored from a backup."""
    cli.write("domains.yaml", SPECS)
    on("2027-01-01", f"dkimctl register domains.yaml\n{PUBLISH}\ndkimctl check-dns")
    on("2027-07-01", example("rotate --older-than"))
    gone = "update delete s20270701._domainkey.a.example.com. TXT\nsend\n"
    done = network.run("nsupdate", "-k", str(network.key_file), stdin=f"server 127.0.0.2\n{gone}")
    assert done.returncode == 0, done.stderr

    with pytest.raises(AssertionError, match=r"a.example.com .* is due, but check first"):
        on("2027-07-19", example("rotate --retired"))
    assert "s1._domainkey.a.example.com" in names()
    retired = json.loads((cli.home / "retired.json").read_text())["items"]
    assert [item["sign_domain"] for item in retired] == ["b.example.com"]
    with pytest.raises(AssertionError, match="DNS now: missing"):
        on("2027-07-19", "dkimctl rotate --retired")
    with pytest.raises(AssertionError, match="SIGNING NOW WITHOUT DNS"):
        on("2027-07-19", "dkimctl check-dns")


def test_the_checks_of_the_docs(cli, on):
    cli.write("domains.yaml", SPECS.replace("a.example.com", "example.com"))
    on("2027-01-01", "dkimctl register domains.yaml --format json > records.json")
    on("2027-01-01", PUBLISH)
    assert "published 2" in on("2027-01-02", example("check-dns --wait 30m")).stderr
    waited = on("2027-01-02", example("--from records.json --format csv"))
    assert "published 2" in waited.stderr
    assert "s1._domainkey.example.com,published" in waited.stdout
