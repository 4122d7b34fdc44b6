"""Ledgers in real files, other processes that use them, small disks and unprivileged users."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dkimctl.ledger.ledger import Ledger

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
_NOBODY = 65534
_PREPARED = """
import os, sqlite3, sys
from pathlib import Path
from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, DomainSpec, Registration, key_of
from dkimctl.addresses import parse_url

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
path = Path(sys.argv[1])
parse_url(ACCOUNT["base_url"])  # imports what a migration needs

def answer(number):
    record = DnsRecord("s._domainkey.x", "TXT", "v" * 415)
    return Registration(f"d{number}.example", "s", 2048, record=record, code="201")
"""
# Imported before, as this user may not be able to read the Python installation.
_UNPRIVILEGED = """
import filelock, shutil, tempfile, urllib.parse
if os.geteuid() == 0:
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    except OSError:
        sys.exit(77)
"""


@pytest.fixture
def account() -> dict[str, str]:
    return ACCOUNT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


@pytest.fixture
def on_disk(small_disk) -> Path:
    """The path of a ledger on a small disk."""
    return small_disk.path / "state" / "ledger.db"


@pytest.fixture
def write(path: Path) -> Callable[..., Ledger]:
    """Open the ledger for writing."""
    return lambda **options: Ledger.open(options.pop("path", path), **ACCOUNT | options)


@pytest.fixture
def read(path: Path) -> Callable[..., Ledger]:
    """Open the ledger read-only."""
    return lambda **options: Ledger.open_existing(options.pop("path", path), **ACCOUNT | options)


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that runs a program with the ledger at `path`, and end it with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(program: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-c", _PREPARED + program, path],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_one


class Elsewhere:
    """A directory that every user may enter, and processes of an unprivileged user."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def give(self, path: Path) -> None:
        """Let this user own a file or directory."""
        if os.geteuid() == 0:
            os.chown(path, _NOBODY, _NOBODY)

    def run(self, program: str, ledger: Path) -> str:
        """Run a program as this user, with the ledger as `path`; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", _PREPARED + _UNPRIVILEGED + program, ledger],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode == 77:
            pytest.skip("this process may not change its user")
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    if sys.platform == "win32":
        pytest.skip("file modes and users are POSIX")
    # Not in pytest's directory, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="dkimctl-test-") as name:
        Path(name).chmod(0o755)
        place = Elsewhere(Path(name) / "state")
        place.path.mkdir()
        yield place
        place.path.chmod(0o755)
