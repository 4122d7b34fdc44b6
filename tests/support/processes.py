"""The command line and the service as processes of their own."""

from __future__ import annotations

import codecs
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dns.exception
import httpx

from commands import CommandServer, Done
from dkimctl.service.clients import create_client
from dkimctl.service.database import open_store

LIMIT = 60.0  # seconds that a command on a terminal, or the start of a service, may take

_INHERITED = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "COVERAGE_PROCESS_START")
# Python runs this at its start.
_NO_BACKOFF = """
from dkimctl.registration import retrying
retrying.backoff = lambda attempts: 0.0
"""


def login_words(account: Mapping[str, str], store: str = "file") -> list[str]:
    """The command that logs in with the secret at standard input."""
    words = ["login", "--credential-store", store, "--secret-stdin"]
    for name in ("AUTH_URL", "BASE_URL", "CLIENT_ID"):
        words += [f"--{name.lower().replace('_', '-')}", account[f"DKIMCTL_{name}"]]
    return words


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def daemon(
    words: Sequence[str], log: Path, is_ready: Callable[[], object], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends; `is_ready` raises or is false until it answers."""
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, **options)
    try:
        deadline = time.monotonic() + LIMIT
        while not _succeeds(is_ready):
            said = log.read_text(errors="replace")
            assert process.poll() is None, f"the program has ended: {said}"
            assert time.monotonic() < deadline, f"the program does not answer: {said}"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT)


def _succeeds(is_ready: Callable[[], object]) -> bool:
    try:
        return bool(is_ready())
    except (OSError, AssertionError, dns.exception.DNSException, httpx.TransportError):
        return False


@cache
def _command_server() -> CommandServer:
    """What commands of this process run in; it ends with this process."""
    return CommandServer(Cli(Path.cwd()).environment)


class Cli:
    """Runs `dkimctl` with `home` as home and working directory.

    A command is a fork of a process that has imported everything, or a process of its own where
    the test decides how that starts. `prefix` is the beginning of each command then, such as that
    of Network.prefix.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.prefix: list[str] = []
        self.environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self.environment |= {"HOME": str(home), "USERPROFILE": str(home), "COLUMNS": "120"}
        self.environment["PAGER"] = "cat"  # no pager, which would wait for keys
        self.environment["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), self.environment.get("PATH", "")]
        )

    def command(self, *words: object) -> list[str]:
        return [*self.prefix, sys.executable, "-m", "dkimctl", *map(str, words)]

    def __call__(
        self, *words: object, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
    ) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        environment = self.environment | (env or {})
        if not self.prefix and sys.platform != "win32":
            server = _command_server()
            if server.fits(environment):
                return server.run(words, data, self.home, environment)
        done = subprocess.run(
            self.command(*words),
            input=data,
            capture_output=True,
            cwd=self.home,
            env=environment,
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

    def at_start(self, code: str) -> None:
        """Have Python run `code` at the start of every later command."""
        site = self.home.parent / "site"
        site.mkdir(exist_ok=True)
        with (site / "sitecustomize.py").open("a", encoding="utf-8") as file:
            file.write(code)
        self.environment["PYTHONPATH"] = str(site)

    def skip_backoff(self) -> None:
        """Have later commands retry at once, unless the service asks them to wait."""
        self.at_start(_NO_BACKOFF)


class ServeProcess:
    """A `dkimctl serve` on a free port of loopback, and its operator's commands."""

    def __init__(self, cli: Cli, *words: object) -> None:
        self.cli = cli
        self._log = cli.home / "serve.log"
        with self._log.open("wb") as log:
            self._process = cli.start(
                "serve", "--port", 0, "--data", "service.db", *words, stderr=log
            )
        try:
            self.url = self._announced_url()
        except BaseException:
            self.stop()
            raise

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT)

    close = stop  # for contextlib.closing

    def wait(self) -> int:
        """Its exit status, when it has ended."""
        return self._process.wait(LIMIT)

    def operate(self, *words: object) -> Done:
        done = self.cli("service", *words, "--data", "service.db")
        assert done.status == 0, done.err
        return done

    def create_client(self) -> dict[str, str]:
        """The environment of a new client: URLs, client ID and secret."""
        with closing(open_store(self.cli.home / "service.db")) as store:
            credentials = create_client(store)
        return {
            "DKIMCTL_AUTH_URL": self.url,
            "DKIMCTL_BASE_URL": self.url,
            "DKIMCTL_CLIENT_ID": credentials.client_id,
            "DKIMCTL_CLIENT_SECRET": credentials.secret,
        }

    def _announced_url(self) -> str:
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and self._process.poll() is None:
            if announced := re.search(r"(?s)serving on (http://\S+).*then log in.*\n", self.said):
                return announced[1]
            time.sleep(0.05)
        raise AssertionError(f"the service did not start: {self.said}")


def converse(
    cli: Cli,
    words: Sequence[str],
    answers: Sequence[tuple[str, str]] = (),
    size: tuple[int, int] = (24, 120),
) -> tuple[int, str]:
    """Run `dkimctl` on a terminal of `size` (lines, columns), typing each answer at its question.

    Gives the exit status, and all that the terminal showed.
    """
    environment = {"TERM": "xterm"} | cli.environment
    del environment["COLUMNS"]
    typed = [(question, f"{answer}\n") for question, answer in answers]
    return on_terminal(cli.command(*words), typed, size, cwd=cli.home, env=environment)


def on_terminal(
    command: Sequence[str],
    answers: list[tuple[str, str]],
    size: tuple[int, int] = (24, 80),
    **options: Any,
) -> tuple[int, str]:
    """The same for any command, in a session of its own; answers are typed as they are."""
    import fcntl
    import pty
    import struct
    import termios

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = subprocess.Popen(
        command, stdin=secondary, stdout=secondary, stderr=secondary, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0), **options,  # noqa: PLW1509
    )  # fmt: skip
    os.close(secondary)
    try:
        shown = _talk(primary, answers)
        return process.wait(LIMIT), shown
    finally:
        process.kill()
        process.wait()
        os.close(primary)


def _talk(primary: int, answers: list[tuple[str, str]]) -> str:
    """Type each answer at its question; gives all that the terminal showed until its end."""
    decode = codecs.getincrementaldecoder("utf-8")().decode  # a read may end within a character
    shown, seen, deadline = "", 0, time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if not select.select([primary], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(primary, 65536)
        except OSError:  # the other side is closed
            return shown
        if not data:
            return shown
        shown += decode(data)
        if answers and answers[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(primary, answers.pop(0)[1].encode())
    raise AssertionError(f"the command did not end; it showed: {shown}")
