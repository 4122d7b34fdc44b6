"""Ledgers in real files, other processes that use them, and small disks."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.postgresql import Database

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
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
def place(path: Path) -> Path | Database:
    """Where the ledger is."""
    return path


@pytest.fixture
def write(place: Path | Database) -> Callable[..., Ledger]:
    """Open the ledger for writing."""
    return lambda **options: Ledger.open(options.pop("path", place), **ACCOUNT | options)


@pytest.fixture
def read(place: Path | Database) -> Callable[..., Ledger]:
    """Open the ledger read-only."""
    return lambda **options: Ledger.open_existing(options.pop("path", place), **ACCOUNT | options)


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
