"""Every example of every help, typed into bash on a terminal by someone who is set up."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import dkim
import pytest

import make_commands
from delegation import Zone
from documents import ROOT
from lives import HOSTS, PRIMARY
from network import running
from postgresql import emptied
from processes import Cli, ServeProcess, converse

if sys.platform != "linux":
    pytest.skip("needs a network namespace of Linux", allow_module_level=True)


def examples() -> dict[str, list[str]]:
    """The examples, each once, by the first word of the command whose help has them.

    Those of `dkimctl --help` are listed under "". Lines of `completion` need each other.
    """
    found: dict[str, list[str]] = {}
    for (_, *words), command in make_commands.commands():
        lines = [line for line in make_commands.examples(command) if not line.startswith("#")]
        of_command = found.setdefault(" ".join(words[:1]).partition(" ")[0], [])
        new = ["\n".join(lines)] if words == ["completion"] else lines
        of_command += [line for line in new if line not in of_command]
    return found


EXAMPLES = examples()
OPERATING = ("service", "serve")  # the service's side needs no other server
ZONES = [Zone(name, ("ns1.test",)) for name in ("example.com", "example.net", "sold.example")]
ZONES.append(Zone("shop.example", ("ns1.test",), "a1._domainkey CNAME a1.shop.example.net.\n"))
CONFIG = f"""
dns: [{{provider: rfc2136, server: {PRIMARY}, key_file: tsig.key}}]
notify: {{command: [cat]}}
delegation:
- {{domains: [shop.example], selectors: 'a{{n}}', count: 1, target: '{{selector}}.{{domain}}.net'}}
"""
SPECS = """\
defaults: {key_len: 2048, start_date: 2036-01-01T00:00+00:00}
domains:
- {sign_domain: example.com, selector: s1, start_date: 2026-01-01T00:00+00:00}
- {sign_domain: mail.example.com, selector: s1}
- {sign_domain: sold.example, selector: s1}
"""
MORE = "sign_domain,selector,key_len,start_date\nnew.example.com,s1,2048,2036-01-01T00:00+00:00\n"
MAIL = b"From: sender@example.com\r\nTo: reader@example.net\r\nSubject: signed\r\n\r\nText\r\n"
FILES = {
    "domains.yaml": SPECS,
    "more.csv": MORE,
    "request.json": '{"domains": [{"sign_domain": "example.net", "selector": "s1"}]}',
    # `ssh HOST COMMAND`, where the host is this one.
    "bin/ssh": '#!/bin/sh\nshift\nexec "$@"\n',
}
REPORTS = {
    "opendmarc.zip": "google.com!example.com!1795000000!1795086399.zip",
    "google.eml": "report.eml",
    "yahoo.xml": "mail/dmarc/report.xml",
}
# Until the service says that it is ready.
SERVING = """\
{line} 2>serve.log &
until grep -q 'then log in' serve.log; do sleep 0.1; jobs %1 >/dev/null; done
kill %1
wait %1
"""

ACCOUNT = [("Profile [default]", ""), ("example.com)", "https://auth.example"),
           ("example.com)", "https://api.example"), ("0a1b2c3d)", "my-id")]  # fmt: skip
YES = [("[y/N]", "y")]


class Typing(NamedTuple):
    """What is done before an example, what is answered to its questions, and its exit status."""

    before: str = ":"
    answers: Sequence[tuple[str, str]] = ()
    status: int = 0


NOTHING_YET = "rm -r .config .local domains.yaml"
# By the beginning of the example; the longest counts.
TYPED = {
    "dkimctl": Typing(),
    "dkimctl show-dns --sandbox": Typing("dkimctl register --sandbox domains.example.yaml"),
    "dkimctl init": Typing(
        NOTHING_YET, [*ACCOUNT, ("[hand]", ""), ("mail.example.com)", "example.com")]
    ),
    "dkimctl init --": Typing(NOTHING_YET),
    "dkimctl init --domain": Typing(),
    "dkimctl init --dns": Typing(NOTHING_YET, [*ACCOUNT, ("mail.example.com)", "example.com")]),
    "dkimctl login": Typing(answers=[("Client secret", "SECRET")]),
    "dkimctl login --profile": Typing(),
    "dkimctl logout": Typing(answers=YES),
    "dkimctl profile delete": Typing(answers=YES),
    "dkimctl publish": Typing("dkimctl register more.csv", YES),
    "dkimctl timer": Typing(answers=YES),
    "dkimctl timer --": Typing(),
    "dkimctl ledger forget": Typing(status=1),  # no key is retired here
    "dkimctl ledger copy": Typing(status=4),  # nor is there such a database
    "dkimctl service export": Typing("mkdir -p etc/opendkim etc/rspamd"),
    "dkimctl service client create": Typing("rm secret.txt"),
    "dkimctl service client rotate-secret": Typing("rm secret.txt"),
    "dkimctl service client delete": Typing(answers=YES),
    "dkimctl service registration delete": Typing(answers=YES),
}


class Bash(Cli):
    """Runs lines in bash, each in a home of its own."""

    def command(self, *words: object) -> list[str]:
        return [*self.prefix, "bash", "-euo", "pipefail", "-c", *map(str, words)]


class World:
    """The service with an account, name servers, and the home of someone who uses both."""

    def __init__(self, directory: Path, network) -> None:
        self.home = directory / "home"
        self._operator = Cli(directory / "operator")
        self._prefix = network.prefix
        self.home.mkdir()
        self._operator.home.mkdir()
        self.service = ServeProcess(network.inside(self._operator))
        self.account = self.service.create_client()
        add = ("delivery", "add", self.account["DKIMCTL_CLIENT_ID"])
        self._deliveries = [self.service.operate(*add).out.strip() for _ in range(2)]
        self._fill(network.inside(Cli(self.home)), network)

    def copy(self, home: Path, *, in_network: bool) -> Bash:
        """The same home at another place, with a shell there."""
        shutil.copytree(self.home, home)
        bash = Bash(home)
        bash.environment["PATH"] = f"{home}/bin:{bash.environment['PATH']}"
        if in_network:
            bash.prefix = self._prefix(home)
        return bash

    def fill_in(self, line: str, database: str) -> str:
        """The line, with what this user has in place of what a reader has."""
        return re.sub(
            "|".join(map(re.escape, own := self._own(database))), lambda word: own[word[0]], line
        )

    def answers(self, typing: Typing) -> list[tuple[str, str]]:
        secret = self.account["DKIMCTL_CLIENT_SECRET"]
        return [(question, text.replace("SECRET", secret)) for question, text in typing.answers]

    def _own(self, database: str) -> dict[str, str]:
        return {
            "https://auth.example": self.service.url,
            "https://api.example": self.service.url,
            "CLIENT_ID": self.account["DKIMCTL_CLIENT_ID"],
            "--client-id ID": f"--client-id {self.account['DKIMCTL_CLIENT_ID']}",
            "-k KEYFILE": "-k tsig.key",
            "/send/123": f"/send/{self._deliveries[0]}",
            "-H @": "--fail -X DELETE -H @",
            ") URL": f") {self.service.url}/send/{self._deliveries[1]}",
            "192.0.2.1": PRIMARY,
            "192.0.2.2:5353": f"{PRIMARY}:53",
            "/etc/": "etc/",
            "/var/mail/": "mail/",
            "_rspamd": self.home.group(),
            "postgresql+psycopg://localhost/dkimctl": database,
        }

    def _fill(self, user: Cli, network) -> None:
        self._write(user, network)
        for profile in ("default", "agency"):
            done = user(
                "login", "--auth-url", self.service.url, "--base-url", self.service.url,
                "--client-id", self.account["DKIMCTL_CLIENT_ID"], "--credential-store", "file",
                "--secret-stdin", "--profile", profile, stdin=self.account["DKIMCTL_CLIENT_SECRET"],
            )  # fmt: skip
            assert done.status == 0, done
        for words in (
            ("register", "domains.yaml"),
            ("publish", "--yes", "--wait", "1m"),
            ("show-dns", "--format", "json", "--output", "records.json"),
        ):
            done = user(*words)
            assert done.status == 0, done
        saved = (self.home / "records.json").read_text()
        user.write("result.json", saved)
        user.write("forgotten.json", saved)
        user.write("retired.json", re.sub(r'"s1(["._])', r'"s0\1', saved))
        self._take_service()

    def _write(self, user: Cli, network) -> None:
        config = self.home / ".config" / "dkimctl"
        (self.home / "bin").mkdir()
        config.mkdir(parents=True)
        for directory in (config, self.home):
            shutil.copy(network.key_file, directory / "tsig.key")
            (directory / "tsig.key").chmod(0o600)
        (config / "config.yaml").write_text(CONFIG)
        for name, text in FILES.items():
            user.write(name, text)
        for program in (self.home / "bin").iterdir():
            program.chmod(0o755)
        user.write("secret.txt", self.account["DKIMCTL_CLIENT_SECRET"] + "\n")
        shutil.copy(ROOT / "domains.example.yaml", self.home)
        (self.home / "mail" / "dmarc").mkdir(parents=True)
        for sample, name in REPORTS.items():
            shutil.copy(ROOT / "tests" / "fixtures" / "reports" / sample, self.home / name)

    def _take_service(self) -> None:
        """Give the user the service's data, as its operator has it, and a mail that is signed."""
        data = self.home / ".local" / "share" / "dkimctl"
        data.mkdir(parents=True, mode=0o700, exist_ok=True)
        with contextlib.closing(sqlite3.connect(self._operator.home / "service.db")) as connection:
            for path in (self.home / "service.db", data / "service.db"):
                connection.execute("VACUUM INTO ?", (str(path),))
                path.chmod(0o600)
            [(key,)] = connection.execute(
                "SELECT private_key FROM registrations WHERE sign_domain = 'example.com'"
            )
        (self.home / "mail.eml").write_bytes(dkim.sign(MAIL, b"s1", b"example.com", key) + MAIL)


@pytest.fixture(scope="module")
def world(tmp_path_factory, needs_tool):
    for tool in ("bash", "curl", "nsupdate"):
        needs_tool(tool)
    directory = tmp_path_factory.mktemp("world")
    network_directory = tmp_path_factory.mktemp("network")
    with running(network_directory, needs_tool, hosts=HOSTS, zones=ZONES, validates=False) as net:
        world = World(directory, net)
        yield world
        world.service.stop()


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_run(command, world, postgresql, tmp_path):
    is_operating = command in OPERATING
    for number, example in enumerate(EXAMPLES[command]):
        database = emptied(postgresql, "service").text if is_operating else ""
        bash = world.copy(tmp_path / str(number), in_network=not is_operating)
        typing = TYPED[max((begin for begin in TYPED if begin in example), key=len)]
        line = world.fill_in(example, database)
        if command == "serve":
            line = SERVING.format(line=line)
        status, shown = converse(
            bash, [f"{typing.before} >before.log 2>&1\n{line}"], world.answers(typing)
        )
        assert "Traceback" not in shown, shown
        assert status == typing.status, f"{example}\n{shown}"
