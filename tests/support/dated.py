"""`dkimctl` at dates of our choosing: one process that forks for each command.

So a command takes a fifth of the time, and a test can have years of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from processes import Cli, Done

_STREAMS = ("stdin", "stdout", "stderr")
# libfaketime fails in the call that time.sleep makes, unless it fakes the monotonic clock as well;
# then those who wait for a lock wait for years.
SLEEP = """
import threading, time
time.sleep = lambda seconds: threading.Event().wait(seconds) and None
"""
FAKETIME = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "UTC"}
_FAKED = FAKETIME | {"FAKETIME_NO_CACHE": "1"}  # to read FAKETIME again in each fork


class CommandServer:
    """Runs `dkimctl` in forks of one process, which has imported everything.

    `prefix` is the beginning of its command. A fork first runs the code in the variable AT_START.
    """

    def __init__(self, directory: Path, prefix: Sequence[str] = ()) -> None:
        self._directory = directory
        words = [*prefix, sys.executable, str(Path(__file__)), str(directory)]
        self._process = subprocess.Popen(
            words, env=Cli(directory).environment | _FAKED,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, words: Sequence[object], stdin: str, home: Path, environment: Mapping[str, str]
    ) -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        (self._directory / "stdin").write_text(stdin)
        line = json.dumps([list(map(str, words)), str(home), dict(environment)])
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        out, err = ((self._directory / name).read_text() for name in _STREAMS[1:])
        assert "Traceback" not in err, err
        return Done(status, out, err)

    def close(self) -> None:
        self._process.communicate()


@contextlib.contextmanager
def serving_commands(
    directory: Path, prefix: Sequence[str], need: Callable[[str], str]
) -> Iterator[CommandServer]:
    """A CommandServer with a date of its own until the block ends."""
    faketime = [need("faketime"), "-f", "@2027-01-01 00:00:00"]
    server = CommandServer(directory, [*prefix, *faketime])
    try:
        yield server
    finally:
        server.close()


class DatedCli:
    """Runs commands in the sandbox, with a home of their own, at the time `now` (UTC)."""

    def __init__(self, home: Path, server: CommandServer, now: datetime) -> None:
        self.home = home
        self.now = now
        self.environment = Cli(home).environment | {"DKIMCTL_PROFILE": "sandbox"}
        self._server = server

    def __call__(self, *words: object, stdin: str = "") -> Done:
        environment = self.environment | {"FAKETIME": faketime(self.now)}
        return self._server.run(words, stdin, self.home, environment)

    def write(self, name: str, text: str) -> str:
        """Put a file into the working directory."""
        (self.home / name).write_text(text, encoding="utf-8")
        return name


def faketime(time: datetime) -> str:
    """A time, which stands still, in the words of faketime."""
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _serve(directory: Path) -> None:
    """Run the command of each line of standard input, and answer with its exit status."""
    _import_all()
    with open(0, "rb", buffering=0, closefd=False) as requests:
        for line in iter(requests.readline, b""):
            words, home, environment = json.loads(line)
            pid = os.fork()
            if not pid:
                os.chdir(home)
                os.environ.update(environment)
                exec(environment.get("AT_START", ""), {})
                _run(words, directory)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(1, f"{status}\n".encode())


def _import_all() -> None:
    """Import what commands import when they need it, as objects that no fork collects."""
    import gc
    import importlib
    import pkgutil

    import dkimctl

    for module in pkgutil.walk_packages(dkimctl.__path__, "dkimctl."):
        # Alembic alone can import migrations.
        if module.name != "dkimctl.__main__" and ".migrations" not in module.name:
            importlib.import_module(module.name)
    for name in ("dns.message", "dns.rdtypes.ANY.TXT", "httpx", "rich.table", "yaml"):
        importlib.import_module(name)
    gc.freeze()


def _run(words: Sequence[str], directory: Path) -> None:
    """Be the command `dkimctl` with these words."""
    from dkimctl.__main__ import main

    for descriptor, name in enumerate(_STREAMS):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(directory / name, flags), descriptor)
    sys.argv = ["dkimctl", *words]
    status = 70
    try:
        status = main()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


if __name__ == "__main__":
    exec(SLEEP)
    _serve(Path(sys.argv[1]))
