"""docs/rotation.md and docs/check-dns.md, day by day: a faked date and a real name server."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest

from dns_servers import Server, key_file, serving
from documents import example
from published import APEX

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


@pytest.fixture
def server(needs_tool, tmp_path):
    zone = tmp_path / "example.com.zone"
    zone.write_text(APEX + 'kept TXT "as it was"\n')
    with serving("named", zone, tmp_path, needs_tool) as server:
        yield server


@pytest.fixture
def on(cli, shell, server, needs_tool, tmp_path):
    """Run a block of the docs on a day, at our server."""
    tool = cli.home / "bin" / "dkimctl"
    tool.parent.mkdir()
    tool.write_text(WRAPPER.format(faketime=needs_tool("faketime"), python=sys.executable))
    tool.chmod(0o755)
    cli.environment["PATH"] = f"{tool.parent}:{cli.environment['PATH']}"
    needs_tool("nsupdate")
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "PRIMARY": f"{server.host} {server.port}",
        "KEY_FILE": str(key_file(tmp_path / "key")),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "TZ": "UTC",
    }

    def run(day: str, block: str):
        at_ours = block.replace("dkimctl check-dns", f"dkimctl check-dns --server {server}")
        return shell(at_ours, env | {"TODAY": f"{day} 10:00:00"}, timeout=120)

    return run


def names(server: Server) -> set[str]:
    """Which of the names of this test have TXT records."""
    wanted = [
        f"{selector}._domainkey.{domain}.example.com"
        for domain in "ab"
        for selector in ("s1", "s20270701")
    ]
    return {name for name in wanted if server.ask(name)}


def test_from_the_first_key_to_its_removal(cli, on, server):
    cli.write("domains.yaml", SPECS)
    rotation, retirement = example("rotate --older-than"), example("rotate --retired")
    publish = next(line for line in rotation.splitlines() if "nsupdate" in line)
    publish = publish.replace("successors.yaml", "")

    on("2027-01-01", f"dkimctl register domains.yaml\n{publish}\ndkimctl check-dns")
    assert names(server) == {f"s1._domainkey.{domain}.example.com" for domain in "ab"}
    on("2027-06-29", "dkimctl rotate > early.yaml && dkimctl register early.yaml")
    assert (cli.home / "early.yaml").read_text().endswith("[]\n")

    done = on("2027-07-01", rotation)
    assert "created 2" in done.stderr
    assert "published 2" in done.stdout + done.stderr
    assert len(names(server)) == 4
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

    on("2027-07-19", retirement)
    assert names(server) == {f"s20270701._domainkey.{domain}.example.com" for domain in "ab"}
    assert server.ask("kept.example.com") == [b"as it was"]
    left = on("2027-07-20", "dkimctl check-dns --format json")
    assert {item["selector"] for item in json.loads(left.stdout)["items"]} == {"s20270701"}

    on("2027-07-20", example("dkimctl ledger import"))
    with contextlib.suppress(AssertionError):  # registered, but no longer published
        on("2027-07-20", "dkimctl check-dns --format json > checks.json")
    checks = json.loads((cli.home / "checks.json").read_text())["items"]
    assert [item["verdict"] for item in checks] == ["missing", "published"] * 2


def test_the_checks_of_the_docs(cli, on, server):
    specs = SPECS.replace("a.example.com", "example.com")
    cli.write("domains.yaml", specs)
    on("2027-01-01", "dkimctl register domains.yaml --format json > records.json")
    publish = (
        '{ echo "server $PRIMARY"; dkimctl show-dns --format nsupdate; } | nsupdate -k $KEY_FILE'
    )
    on("2027-01-01", publish)
    waited = on("2027-01-02", example("check-dns --wait 30m"))
    assert "published 2" in waited.stderr
    checks = example("--from records.json --format csv").replace(' --server "$PRIMARY_IP"', "")
    done = on("2027-01-02", checks)
    assert "s1._domainkey.example.com,published" in done.stdout
