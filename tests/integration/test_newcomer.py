"""A newcomer who types only what the tool has printed: from `serve` to `ledger forget`.

All is real but the dates of `dkimctl`: the service over HTTP, a terminal of 80 columns, a named
that takes signed updates, and DNS from the root on.
"""

from __future__ import annotations

import re
import sys

import pytest

from dated import FAKETIME, SLEEP
from lives import PRIMARY
from processes import Cli, ServeProcess, converse

COUNT = 201  # a terminal shows up to 200
DOMAINS = [f"shop{number}.example.com" for number in range(COUNT)]
SPECS = "defaults: {key_len: 1024, start_date: 2027-01-04T00:00+00:00}\ndomains:\n" + "".join(
    f"- {{sign_domain: {domain}, selector: s1}}\n" for domain in DOMAINS
)
# Only dkimctl gets another date: signed updates are refused if the clocks differ.
WRAPPER = """#!/bin/sh
exec {faketime} -f "$TODAY" {python} -m dkimctl "$@"
"""


class Terminal(Cli):
    """Runs each line in a shell on a terminal, in the network; `shown` is what the last showed."""

    shown = ""

    def command(self, *words: object) -> list[str]:
        return [*self.prefix, "bash", "-c", *map(str, words)]

    def type(self, line: str, status: int = 0) -> None:
        ended, shown = converse(self, [line], size=(24, 80))
        self.shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
        assert ended == status, f"{line}\n{self.shown}"
        assert "Traceback" not in self.shown, self.shown

    def printed(self, *words: str) -> str:
        """The command with these words, as it was printed, on one line."""
        commands = re.findall(r"`([^`\r\n]+)`", self.shown)
        named = [one for one in commands if all(word in one for word in words)]
        assert len(named) == 1, f"{words}\n{self.shown}"
        for part in re.findall(r"dkimctl [^&|]+", named[0]):
            assert part.count("--profile agency") == 1, named
        return named[0]


@pytest.fixture
def terminal(cli, life, needs_tool):
    needs_tool("bash")
    terminal = Terminal(cli.home)
    tool = cli.home / "bin" / "dkimctl"
    tool.parent.mkdir()
    tool.write_text(WRAPPER.format(faketime=needs_tool("faketime"), python=sys.executable))
    tool.chmod(0o755)
    terminal.environment["PATH"] = f"{tool.parent}:{terminal.environment['PATH']}"
    terminal.environment |= FAKETIME
    terminal.at_start(SLEEP)
    terminal.prefix = life.network.prefix(cli.home)
    yield terminal
    left = [f"{selector}._domainkey.{domain}" for domain in DOMAINS for selector in ("s1", "s2")]
    life.restore(dict.fromkeys(left, ()), at=[PRIMARY])


@pytest.fixture
def service(cli, life):
    service = ServeProcess(life.network.inside(cli))
    yield service
    service.stop()


@pytest.mark.nightly
def test_from_serve_to_forget(terminal, service, life):
    key_file = str(life.network.key_file)
    terminal.write("domains.yaml", SPECS)
    terminal.environment["TODAY"] = "2027-01-01 10:00:00"

    [create] = re.findall(r"dkimctl service client create .*", service.said)
    terminal.type(create)
    [login] = re.findall(r"dkimctl login --auth-url URL .*", terminal.shown)
    login = login.strip().replace("URL", service.url)
    terminal.type(f"{login} --profile agency --credential-store file")

    terminal.type(terminal.printed("register --profile agency").replace("FILE", "domains.yaml"))
    assert f"to create {COUNT}" in terminal.shown
    terminal.type(terminal.printed("register"))
    assert f"created {COUNT}" in terminal.shown
    zone_files, check = map(terminal.printed, ("--output-dir", "--wait"))
    [show_all] = re.findall(r"^`(.+)` shows all", terminal.shown, re.MULTILINE)
    add = terminal.printed("nsupdate -k")
    terminal.type(show_all)
    assert terminal.shown.count("s1._domainkey.shop") == COUNT
    terminal.type(zone_files)
    assert f"example.com.zone ({COUNT} records)" in terminal.shown

    terminal.type(check.replace("--wait 30m", ""), status=1)
    assert terminal.printed("nsupdate -k") == add
    terminal.type(add.replace("KEYFILE", key_file))
    terminal.type(check)
    assert f"published {COUNT}" in terminal.shown
    rotate = terminal.printed("rotate")

    terminal.environment["TODAY"] = "2027-07-01 10:00:00"
    few = rotate.replace("domains.yaml", "'shop1?.*'")
    terminal.type(f"{few} --selector s2 --key-len 1024")
    retire = terminal.printed("--retired")
    terminal.type(terminal.printed("successors.yaml"))
    assert "created 10" in terminal.shown
    add, check = map(terminal.printed, ("nsupdate -k", "--wait"))
    terminal.type(add.replace("KEYFILE", key_file))
    terminal.type(check)

    terminal.environment["TODAY"] = "2027-07-18 10:00:00"
    terminal.type(retire)
    delete, gone, forget = map(terminal.printed, ("nsupdate -k", "--expect-absent", "forget"))
    terminal.type(delete.replace("KEYFILE", key_file))
    terminal.type(gone)
    assert "gone 10" in terminal.shown
    terminal.type(forget)
    assert f"forgot 10, kept {COUNT}" in terminal.shown
    terminal.type("dkimctl check-dns --profile agency")
    assert f"dkimctl: published {COUNT}\r\n" in terminal.shown
