"""A newcomer who types only what the tool has printed, until `dkimctl` says that all is well.

What the terminal shows is the second half of docs/first-steps.md, which this writes with
DKIMCTL_WRITE_DOCS=1; keys, selectors, dates and addresses, which are others each time, are written
as if they were the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from documents import ROOT
from lives import PRIMARY
from processes import Cli, ServeProcess

_LIMIT = 60.0  # seconds that a command may take
# bash signals each time that it is ready for the next line.
_PROFILE = """
PS1='$ '
unset HISTFILE
PROMPT_COMMAND='{signal}'
"""


class Answer(NamedTuple):
    """What is typed once a prompt is shown."""

    prompt: str
    text: str


class Terminal:
    """A terminal with bash, in the home and environment of `cli`; its files are in `directory`."""

    def __init__(
        self, cli: Cli, tmux: str, directory: Path, *, columns: int = 80, lines: int = 60
    ) -> None:
        self._tmux = [tmux, "-S", str(directory / "tmux.socket"), "-f", os.devnull]
        self._environment = cli.environment | {"TERM": "xterm-256color"}
        self._environment.pop("COLUMNS", None)
        profile = directory / "bashrc"
        signal = " ".join([*self._tmux, "wait-for", "-S", "ready"])
        profile.write_text(_PROFILE.format(signal=signal))
        shell = [*cli.prefix, "bash", "--noprofile", "--rcfile", str(profile), "-i"]
        size = ("-x", str(columns), "-y", str(lines))
        self._run("new-session", "-d", "-c", str(cli.home), *size, *shell)
        self._wait()

    def type(self, line: str, answers: Sequence[Answer] = ()) -> str:
        """What a command showed, with the line itself and what was typed as an answer."""
        self._run("clear-history")
        self._enter("clear")
        self._wait()
        self._run("clear-history")
        self._enter(line)
        for prompt, text in answers:
            self._wait_for(prompt)
            self._enter(text)
        self._wait()
        return self.screen().rstrip().removesuffix("$").rstrip() + "\n"

    def screen(self) -> str:
        """All that is shown since the line was typed, with wrapped lines joined."""
        shown = self._run("capture-pane", "-p", "-J", "-S", "-")
        message = r"(?m)^(?:dkimctl|hint): .*(?:\n  \S.*)+"
        return re.sub(message, lambda lines: lines[0].replace("\n  ", " "), shown)

    def close(self) -> None:
        self._run("kill-server")

    def _enter(self, text: str) -> None:
        self._run("send-keys", "-l", "--", text)
        self._run("send-keys", "Enter")

    def _wait(self) -> None:
        """Until bash is ready for the next line, and shows that."""
        self._run("wait-for", "ready")
        self._wait_for("\n$")

    def _wait_for(self, prompt: str) -> None:
        deadline = time.monotonic() + _LIMIT
        while not f"\n{self.screen().rstrip()}".endswith(prompt.rstrip()):
            assert time.monotonic() < deadline, f"{prompt} is not shown\n{self.screen()}"
            time.sleep(0.05)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._environment, capture_output=True, text=True,
            timeout=_LIMIT, check=True,
        )  # fmt: skip
        return done.stdout


PAGE = ROOT / "docs" / "first-steps.md"
FIRST_DAY = date(2027, 1, 4)  # that of the page
MARK = "<!-- From here on written by tests/integration/test_first_steps.py: do not edit. -->\n"
HEAD = """
What a terminal shows someone who begins with nothing, and types only what `dkimctl` has said:
`dkimctl` by itself always says where you stand and what comes next. Long keys are cut here.
`g=*` in records is from before RFC 6376, which dropped it: receivers ignore it.
"""
SANDBOX = """
### Without an account

The [sandbox](service.md) is the service here. The DNS is real: a BIND that takes updates
signed with the key in `tsig.key`, which replaces the word `KEYFILE`.
"""
ACCOUNT = """
### With an account

The provider has sent two URLs, a client ID and a client secret, and the zone's server takes updates
signed with the key in `tsig.key`.
"""


class Newcomer:
    """Types commands, and remembers what was shown."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.shown = ""
        self.transcript = ""

    def type(self, line: str, *answers: Answer) -> None:
        self.shown = self._terminal.type(line, answers)
        self.transcript += f"\n```text\n{self.shown}```\n"
        assert "Traceback" not in self.shown

    def follow(self, *words: str | Answer, **filled_in: str) -> None:
        """Type the first of the commands just printed that has these words, and answer it."""
        command = self.printed(*(word for word in words if isinstance(word, str)))
        for placeholder, value in filled_in.items():
            command = command.replace(placeholder, value)
        self.type(command, *(one for one in words if isinstance(one, Answer)))

    def printed(self, *words: str) -> str:
        listed = re.findall(r"^  (dkimctl.*?)(?:   .*)?$", self.shown, re.MULTILINE)
        named = re.findall(r"`(dkimctl [^`]+)`", self.shown)
        commands = [one for one in (*listed, *named) if all(word in one.split() for word in words)]
        assert commands, f"no command with {words} was printed:\n{self.shown}"
        return commands[0]


@pytest.fixture
def newcomer(cli, hosted, needs_tool, tmp_path):
    network, _ = hosted
    cli.prefix = network.prefix(cli.home)
    cli.environment["TZ"] = "UTC"
    (cli.home / "tsig.key").write_text(network.key_file.read_text())
    (cli.home / "tsig.key").chmod(0o600)
    terminal = Terminal(cli, needs_tool("tmux"), tmp_path, columns=100)
    yield Newcomer(terminal)
    terminal.close()
    names = {item["setting_values"]["fqdn"] for words in ((), ("--sandbox",))
             for item in cli("show-dns", *words, "--format", "json").json["items"]}  # fmt: skip
    script = "".join(f"update delete {name} TXT\n" for name in names)
    network.run("nsupdate", "-k", str(network.key_file), stdin=f"server {PRIMARY}\n{script}send\n")


@pytest.fixture
def service(cli, hosted):
    """The service, and an account there: its address, client ID and secret."""
    network, _ = hosted
    service = ServeProcess(network.inside(cli))
    yield service
    service.stop()


def test_the_page_is_what_a_newcomer_sees(newcomer, service, cli):
    sandbox = on_the_sandbox(newcomer)
    newcomer.transcript = ""
    (cli.home / "domains.yaml").unlink()
    account = service.create_client()
    page = HEAD + SANDBOX + sandbox + ACCOUNT + with_an_account(newcomer, account)
    places = {str(cli.home): "~", service.url: "http://127.0.0.1:8025",
              account["DKIMCTL_CLIENT_ID"]: "0a1b2c3d"}  # fmt: skip
    page = as_the_same(page, places)
    by_hand, mark, written = PAGE.read_text(encoding="utf-8").partition(MARK)
    if os.environ.get("DKIMCTL_WRITE_DOCS") == "1":
        PAGE.write_text(by_hand + mark + page, encoding="utf-8")
        written = page
    assert written == page, "run this test with DKIMCTL_WRITE_DOCS=1"


def on_the_sandbox(newcomer: Newcomer) -> str:
    newcomer.type("dkimctl")
    newcomer.follow("init", "--sandbox")
    newcomer.follow("register", "domains.yaml", "--dry-run")
    newcomer.follow("register", "domains.yaml")
    newcomer.follow("show-dns", "nsupdate", KEYFILE="tsig.key")
    newcomer.type("dkimctl --sandbox")
    newcomer.follow("check-dns", "--wait")
    assert "published 1" in newcomer.shown
    newcomer.type("dkimctl --sandbox")
    assert "All is well." in newcomer.shown
    return newcomer.transcript


def with_an_account(newcomer: Newcomer, account: dict[str, str]) -> str:
    newcomer.type("dkimctl")
    newcomer.follow(
        "init",
        Answer("Profile [default]: ", ""),
        Answer("example.com): ", account["DKIMCTL_AUTH_URL"]),
        Answer("example.com): ", account["DKIMCTL_BASE_URL"]),
        Answer("0a1b2c3d): ", account["DKIMCTL_CLIENT_ID"]),
        Answer("[hand]: ", "rfc2136"),
        Answer("192.0.2.1): ", PRIMARY),
        Answer("[none]: ", "tsig.key"),
        Answer("mail.example.com): ", "example.com"),
    )
    newcomer.follow("login", Answer("(not shown): ", account["DKIMCTL_CLIENT_SECRET"]))
    newcomer.follow("register", "--dry-run")
    newcomer.follow("register", Answer("[y/N]: ", "y"))
    newcomer.follow("publish", Answer("[y/N]: ", "y"))
    newcomer.follow("check-dns")
    newcomer.type("dkimctl")
    assert "All is well." in newcomer.shown
    return newcomer.transcript


def as_the_same(text: str, places: dict[str, str]) -> str:
    """The text with what differs each time as on the page."""
    for real, written in places.items():
        text = text.replace(real, written)
    today = datetime.now(UTC).date()

    def moved(found: re.Match[str]) -> str:
        return str(date.fromisoformat(found[0]) - today + FIRST_DAY)

    text = re.sub(r"20\d\d-\d\d-\d\d", moved, text)
    text = re.sub(r"\bk[0-9a-f]{8}\b", "k3d0a1b2c", text)
    return re.sub(r"p=([A-Za-z0-9+/]{8})[A-Za-z0-9+/=]{20,}", r"p=\1…", text)
