"""What crash.py and faulty.py share: a faulty service on loopback, and `dkimctl register`.

Every command is a process of its own, whose home is a directory of the caller.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "support"))  # also without pytest

import faulty_service
from audit import Audit, Item, LedgerState, Record, audit, read_ledger, read_store
from dkimctl.service.clients import create_client
from dkimctl.service.database import open_store
from load import environment, running

_FILE = "domains.yaml"
_DATA = "service.db"
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
        self._output, self._errors = home / "output", home / "errors"
        self._batch_size = batch_size
        self._environment = environment(home)

    @contextmanager
    def served(self, **faults: float) -> Iterator[None]:
        """Run the service with these faults and a client, until the block ends.

        Afterwards no abandoned request is in flight.
        """
        data = self._home / _DATA
        with running(sys.executable, faulty_service.__file__, data, json.dumps(faults)) as url:
            with closing(open_store(data)) as store:
                client = create_client(store)
            self._environment = environment(self._home, url) | {
                "DKIMCTL_CLIENT_ID": client.client_id,
                "DKIMCTL_CLIENT_SECRET": client.secret,
            }
            yield

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `register` on the file and leave it running; its streams go to files."""
        options = ["--format", "json", "--batch-size", str(self._batch_size), *self.form.words]
        command = [sys.executable, "-m", "dkimctl", "register", _FILE, *options, *words]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            return subprocess.Popen(
                command, cwd=self._home, env=self._environment, stdout=output, stderr=errors
            )

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
        return read_ledger(self._home)

    def last_write(self) -> int:
        """The time of the last write to the ledger, in nanoseconds, from its write-ahead log."""
        with suppress(FileNotFoundError):
            log = (self._home / "ledger.db-wal").stat()
            return log.st_mtime_ns if log.st_size else 0
        return 0

    def store(self) -> list[Record]:
        """The registrations of the service."""
        return read_store(self._home / _DATA)

    def audit(self, run: Run) -> Audit:
        """Compare the output of a run with store and ledger, while no request is in flight."""
        return audit(self.domains, run.items, self.store(), self.ledger())
