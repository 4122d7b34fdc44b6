"""What crash.py and faulty.py share: a faulty service on loopback, and `dkimctl register`.

Every command is a process of its own, whose home is a directory of the caller.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "support"))  # also without pytest

import faulty_service
from audit import Audit, Item, LedgerState, Record, audit, read_ledger, read_store

_FILE = "domains.yaml"
_DATA = "service.db"
_OTHERS = ("DKIMCTL_", "XDG_")  # variables that point out of the home
_SERVICE_LIMIT = 30.0  # seconds for the service to listen, and to end
_RUN_LIMIT = 3600.0  # seconds for one `register`


class Form(NamedTuple):
    """One way to register domains: the entry in the file, and options of the command."""

    name: str
    entry: str
    words: tuple[str, ...] = ()


EXPLICIT = Form("explicit selectors", "- {{sign_domain: {}, selector: s1}}\n")
ASSIGNED = Form("--assign-selector", "- {}\n", ("--assign-selector", "s%Y%m%d%H%M%S{domain}"))
CHOSEN = Form("selectors that the service chooses", "- {}\n")


class Run(NamedTuple):
    """A `register` that has ended."""

    status: int
    seconds: float
    items: list[Item]
    said: str  # on stderr


class Scene:
    """A home with a file of `count` domains, shuffled with `seed`."""

    def __init__(self, home: Path, form: Form, count: int, seed: int, batch_size: int) -> None:
        self.form = form
        self.domains = [f"d{number:05}.example.com" for number in range(count)]
        random.Random(seed).shuffle(self.domains)
        text = "".join(map(form.entry.format, self.domains))
        (home / _FILE).write_text(text, encoding="utf-8")
        self._home = home
        self._state = home / "state"
        self._output, self._errors, self._log = home / "output", home / "errors", home / "log"
        self._batch_size = batch_size
        self._environment = _environment() | {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "DKIMCTL_STATE_DIR": str(self._state),
        }

    @contextmanager
    def served(self, **faults: float) -> Iterator[None]:
        """Run the service with these faults and a client, until the block ends.

        Afterwards no abandoned request is in flight.
        """
        command = [sys.executable, faulty_service.__file__, _DATA, json.dumps(faults)]
        with self._log.open("wb") as log:
            process = subprocess.Popen(command, cwd=self._home, env=self._environment, stderr=log)
        try:
            self._environment |= self._create_client(self._announced_url(process))
            yield
        finally:
            process.terminate()
            process.wait(_SERVICE_LIMIT)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `register` on the file and leave it running; its streams go to files."""
        command = ("register", _FILE, "--format", "json", "--batch-size", str(self._batch_size))
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            return self._popen(*command, *self.form.words, *words, stdout=output, stderr=errors)

    def register(self, *words: str) -> Run:
        """Run `register` on the file to its end."""
        started = time.perf_counter()
        status = self.start(*words).wait(_RUN_LIMIT)
        seconds = time.perf_counter() - started
        output = self._output.read_text("utf-8")
        assert output, f"no output, exit {status}: {self.said()}"
        return Run(status, seconds, json.loads(output)["items"], self.said())

    def said(self) -> str:
        """The stderr of the latest `register`."""
        return self._errors.read_text("utf-8")

    def printed(self) -> list[Item]:
        """The items that a killed run printed completely."""
        lines = self._output.read_text("utf-8").split("\n")[1:-1]
        return [json.loads(line.removesuffix(",")) for line in lines if line.startswith("{")]

    def ledger(self) -> LedgerState:
        """The state of the ledger, while no `register` runs."""
        return read_ledger(self._state)

    def last_write(self) -> int:
        """The time of the last write to the ledger, in nanoseconds, from its write-ahead log."""
        try:
            log = (self._state / "ledger.db-wal").stat()
        except FileNotFoundError:
            return 0
        return log.st_mtime_ns if log.st_size else 0

    def store(self) -> list[Record]:
        """The registrations of the service."""
        return read_store(self._home / _DATA)

    def audit(self, run: Run) -> Audit:
        """Compare the output of a run with store and ledger, while no request is in flight."""
        return audit(self.domains, run.items, self.store(), self.ledger())

    def _popen(self, *words: str, **streams: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dkimctl", *words]
        return subprocess.Popen(command, cwd=self._home, env=self._environment, **streams)

    def _announced_url(self, process: subprocess.Popen[bytes]) -> str:
        deadline = time.monotonic() + _SERVICE_LIMIT
        while time.monotonic() < deadline and process.poll() is None:
            if announced := re.search(r"serving on (http://\S+)", self._log.read_text("utf-8")):
                return announced[1]
            time.sleep(0.05)
        raise AssertionError(f"the service did not start: {self._log.read_text('utf-8')}")

    def _create_client(self, url: str) -> Mapping[str, str]:
        words = ("service", "client", "create", "--data", _DATA)
        with self._popen(*words, stdout=subprocess.PIPE) as process:
            made = json.loads(process.communicate(timeout=_SERVICE_LIMIT)[0])
        return {
            "DKIMCTL_AUTH_URL": url,
            "DKIMCTL_BASE_URL": url,
            "DKIMCTL_CLIENT_ID": made["client_id"],
            "DKIMCTL_CLIENT_SECRET": made["client_secret"],
        }


def arguments(*defaults: int) -> list[int]:
    """The numbers on the command line, or the defaults."""
    given = [int(word) for word in sys.argv[1:]]
    return [*given, *defaults[len(given) :]]


def _environment() -> dict[str, str]:
    """The environment of this process, but with cached byte code."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith(_OTHERS)
    }
