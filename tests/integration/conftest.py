"""The real command line in a home of its own, and a live service beside it."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "COVERAGE_PROCESS_START")


@dataclass
class Done:
    """What one command came to."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Cli:
    """Runs `dkimctl` as users do: in a process, with `home` as home and working directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.environment |= {"HOME": str(home), "USERPROFILE": str(home), "COLUMNS": "120"}
        self.environment["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), self.environment.get("PATH", "")]
        )

    def command(self, *words: object) -> list[str]:
        return [sys.executable, "-m", "dkimctl", *map(str, words)]

    def __call__(
        self, *words: object, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
    ) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            self.command(*words),
            input=data,
            capture_output=True,
            cwd=self.home,
            env=self.environment | (env or {}),
            timeout=120,
            check=False,
        )
        result = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in result.err, result.err
        return result

    def start(self, *words: object, **options) -> subprocess.Popen[bytes]:
        """Start a command and leave it running."""
        options = {"env": self.environment} | options
        return subprocess.Popen(self.command(*words), cwd=self.home, **options)

    def write(self, name: str, text: str) -> str:
        """Put a file into the working directory."""
        (self.home / name).write_text(text, encoding="utf-8")
        return name


@pytest.fixture
def cli(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Cli(home)


@pytest.fixture
def shell(cli, needs_tool):
    """Run a block in a shell that stops at the first command that fails."""

    def shell(block: str, env: Mapping[str, str], **options) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [needs_tool("bash"), "-euo", "pipefail", "-c", block],
            cwd=cli.home, env=cli.environment | env, capture_output=True, text=True, check=False,
            **options,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done

    return shell


@dataclass
class LiveService:
    """A `dkimctl serve` on loopback, and its operator's side."""

    url: str
    cli: Cli
    data: Path

    def operate(self, *words: object) -> Done:
        done = self.cli("service", *words, "--data", self.data)
        assert done.status == 0, done.err
        return done

    def create_client(self) -> dict[str, str]:
        """The environment of a new client: URLs, client ID and secret."""
        made = self.operate("client", "create").json
        return {
            "DKIMCTL_AUTH_URL": self.url,
            "DKIMCTL_BASE_URL": self.url,
            "DKIMCTL_CLIENT_ID": made["client_id"],
            "DKIMCTL_CLIENT_SECRET": made["client_secret"],
        }


@pytest.fixture(scope="session")
def live_service(tmp_path_factory):
    """One service for all tests; each makes a client of its own."""
    home = tmp_path_factory.mktemp("service")
    cli = Cli(home)
    log = (home / "serve.log").open("wb")
    process = cli.start("serve", "--port", 0, "--data", home / "service.db", stderr=log)
    try:
        yield LiveService(_announced_url(home / "serve.log", process), cli, home / "service.db")
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def _announced_url(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"serving on (http://\S+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"the service did not start: {log.read_text()}")


@pytest.fixture
def account(live_service):
    """The environment of a client of its own at the live service."""
    return live_service.create_client()


@pytest.fixture
def login(cli):
    """Log in with the secret on standard input, kept in a file."""

    def login(account, *words):
        return cli(
            "login", "--auth-url", account["DKIMCTL_AUTH_URL"],
            "--base-url", account["DKIMCTL_BASE_URL"],
            "--client-id", account["DKIMCTL_CLIENT_ID"],
            "--credential-store", "file", "--secret-stdin", *words,
            stdin=account["DKIMCTL_CLIENT_SECRET"] + "\n",
        )  # fmt: skip

    return login


@pytest.fixture
def scripted_account(scripted_server, api_fixture, make_answer):
    """The environment of a client at a scripted server that issues tokens.

    Set `registering` on the server to an Answer (or None, to hang up) for other requests.
    """

    def answer(request):
        if request.path == "/oauth2/token":
            return make_answer(200, api_fixture("token.json"))
        return scripted_server.registering

    scripted_server.registering = make_answer(500)
    scripted_server.answer = answer
    return {
        "DKIMCTL_AUTH_URL": scripted_server.url,
        "DKIMCTL_BASE_URL": scripted_server.url,
        "DKIMCTL_CLIENT_ID": "id",
        "DKIMCTL_CLIENT_SECRET": "topsecret-value",
    }


_LIMIT = 30.0  # seconds that a command on a terminal may take


def converse(cli, words: Sequence[str], answers: Sequence[tuple[str, str]] = (), size=(24, 120)):
    """Run `words` on a terminal of `size` (lines, columns); type each answer at its question."""
    import fcntl
    import pty
    import struct
    import termios

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {k: v for k, v in cli.environment.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    process = cli.start(
        *words, stdin=secondary, stdout=secondary, stderr=secondary, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0), env=environment,
    )  # fmt: skip
    os.close(secondary)
    try:
        shown = _talk(primary, list(answers))
        return process.wait(_LIMIT), shown
    finally:
        process.kill()
        process.wait()
        os.close(primary)


def _talk(primary: int, answers: list[tuple[str, str]]) -> str:
    shown, looked_at, deadline = "", 0, time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        if not select.select([primary], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(primary, 65536)
        except OSError:  # the other side is closed
            return shown
        if not data:
            return shown
        shown += data.decode()
        if answers and answers[0][0] in shown[looked_at:]:
            looked_at = len(shown)
            os.write(primary, (answers.pop(0)[1] + "\n").encode())
    raise AssertionError(f"the command did not end; it showed: {shown}")


@pytest.fixture
def on_terminal(cli):
    """Run a command on a pseudo-terminal; gives (exit status, all that it showed)."""
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    return lambda words, answers=(), **options: converse(cli, words, answers, **options)
