"""docs/rotation.md and docs/check-dns.md, day by day: a faked date, and DNS from the root on."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from commands import SLEEP
from dated import FAKETIME, faketime
from dkimctl.models import RegistrationKey, key_of
from documents import example
from lives import PRIMARY, Life
from needs import NO_NAMESPACE, give_up

FIRST = {key_of(f"{domain}.example.com", "s1") for domain in "ab"}
SECOND = {key_of(f"{domain}.example.com", "s20270701") for domain in "ab"}
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
dkimctl check-dns
"""


@pytest.fixture
def on(cli, shell, life, needs_tool):
    """Let time pass, and run a block of the docs then, in the network of that life."""
    tool = cli.home / "bin" / "dkimctl"
    tool.parent.mkdir()
    tool.write_text(WRAPPER.format(faketime=needs_tool("faketime"), python=sys.executable))
    tool.chmod(0o755)
    cli.environment["PATH"] = f"{tool.parent}:{cli.environment['PATH']}"
    cli.at_start(SLEEP)
    cli.prefix = life.network.prefix(cli.home)
    env = FAKETIME | {
        "DKIMCTL_PROFILE": "sandbox",
        "PRIMARY": PRIMARY,
        "KEY_FILE": str(life.network.key_file),
    }

    def run(time: str, block: str):
        life.until(time)
        try:
            return shell(block, env | {"TODAY": faketime(life.now)}, timeout=120)
        finally:
            life.dns_changed()

    return run


def in_dns(life: Life) -> set[RegistrationKey]:
    """Which of the keys of this test have TXT records."""
    return {key for key in FIRST | SECOND if life.values(key)}


def test_from_the_first_key_to_its_removal(cli, on, life):
    cli.write("domains.yaml", SPECS)
    rotation, retirement = example("rotate --older-than"), example("rotate --retired")

    on("2027-01-01 10:00", f"dkimctl register domains.yaml\n{PUBLISH}")
    assert in_dns(life) == FIRST
    on("2027-06-22 10:00", "dkimctl rotate > early.yaml && dkimctl register early.yaml")
    assert (cli.home / "early.yaml").read_text().endswith("[]\n")

    done = on("2027-07-01 10:00", rotation)
    assert "created 2" in done.stderr
    assert "published 2" in done.stdout + done.stderr
    assert in_dns(life) == FIRST | SECOND
    again = on("2027-07-01 10:00", "dkimctl rotate --older-than 180d | dkimctl register -")
    assert "nothing is due" in again.stderr
    # The result has both keys of each domain.
    items = json.loads(on("2027-07-02 10:00", "dkimctl check-dns --format json").stdout)["items"]
    assert [item["verdict"] for item in items] == ["published"] * 4

    life.until("2027-07-17 09:00")
    assert life.needed(*FIRST)  # for the mail of the morning of 4 July
    life.until("2027-07-18 09:59")
    assert life.retired() == (0, set())
    early = life.cli("ledger", "forget", "*")
    assert (early.status, early.out) == (1, "")

    on("2027-07-18 10:00", retirement)
    assert in_dns(life) == SECOND
    assert "as it was" in life.network.run("dig", "kept.example.com", "TXT").stdout
    items = json.loads(on("2027-07-20 10:00", "dkimctl check-dns --format json").stdout)["items"]
    assert {item["selector"] for item in items} == {"s20270701"}

    on("2027-07-20 10:00", example("dkimctl ledger import"))
    items = json.loads(on("2027-07-20 10:00", "dkimctl check-dns --format json").stdout)["items"]
    assert [item["verdict"] for item in items] == ["retired", "published"] * 2
    life.until("2027-08-15 10:00")
    assert not life.mail.lost


def test_the_checks_of_the_docs(cli, on):
    cli.write("domains.yaml", SPECS.replace("a.example.com", "example.com"))
    on("2027-01-01 10:00", "dkimctl register domains.yaml --format json > records.json")
    on("2027-01-01 10:00", PUBLISH)
    assert "published 2" in on("2027-01-02 10:00", example("check-dns --wait 30m")).stderr
    done = on(
        "2027-01-02 10:00",
        example("--from records.json --format csv").replace("192.0.2.1", PRIMARY),
    )
    assert "published 2" in done.stderr
    assert "s1._domainkey.example.com,published" in done.stdout


def test_the_rehearsal(shell, needs_tool):
    for tool in ("faketime", "named", "ip"):
        needs_tool(tool)
    if subprocess.run([needs_tool("unshare"), "-rmnp", "--kill-child", "true"]).returncode:
        give_up(NO_NAMESPACE)
    done = shell(example("unshare -rmnp"), {}, timeout=120)
    assert re.findall("(?m)registered 1, published 1|nothing is due|removed 1$", done.stderr) == [
        "registered 1, published 1", "nothing is due", "removed 1"
    ]  # fmt: skip
