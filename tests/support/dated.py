"""`dkimctl` at dates of our choosing, in forks of one process, so that a test can have years."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from commands import CommandServer, Done
from processes import Cli

FAKETIME = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "UTC"}
_FAKED = FAKETIME | {"FAKETIME_NO_CACHE": "1"}  # to read FAKETIME again in each fork


@contextlib.contextmanager
def serving_commands(
    directory: Path, prefix: Sequence[str], need: Callable[[str], str]
) -> Iterator[CommandServer]:
    """A CommandServer with a date of its own until the block ends."""
    faketime = [need("faketime"), "-f", "@2027-01-01 00:00:00"]
    clock = [f"{name}={value}" for name, value in _FAKED.items()]
    server = CommandServer(Cli(directory).environment, [*prefix, "env", *clock, *faketime])
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
        return self._server.run(words, stdin.encode(), self.home, environment)

    def write(self, name: str, text: str) -> str:
        """Put a file into the working directory."""
        (self.home / name).write_text(text, encoding="utf-8")
        return name


def faketime(time: datetime) -> str:
    """A time, which stands still, in the words of faketime."""
    return f"{time:%Y-%m-%d %H:%M:%S}"
