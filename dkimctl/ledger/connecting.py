"""Connections to the ledger's file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.ledger.faults import corrupt, sound_id

_BUSY_SECONDS = 10
_NO_ACCOUNT = -1


def connect(path: Path, parameters: str) -> sqlite3.Connection:
    """Connect to the file at `path`, which is absolute, with parameters of SQLite's URIs.

    Transactions begin where they are written, not in the driver. Raises sqlite3.Error, OSError.
    """
    _require_not_emptied(path)
    return sqlite3.connect(
        f"{sqlite_uri(path.as_uri())}?{parameters}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
    )


def sqlite_uri(uri: str) -> str:
    """A path's URI in SQLite's way, which takes no host: a Windows share is part of the path."""
    return uri if uri.startswith("file:///") else uri.replace("file:", "file://", 1)


def beside(path: Path, side: str) -> Path:
    """A file that SQLite keeps beside the one at `path`, such as its `-wal`."""
    return path.with_name(path.name + side)


def size_of(path: Path) -> int:
    """In bytes; 0 where there is no file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


Identity = tuple[int, int] | None


def real(path: Path) -> Path:
    """Where the file is that `path` may link to: SQLite keeps its side files there."""
    return Path(os.path.realpath(path))


def identity_of(path: Path) -> Identity:
    """What tells a file from another that took its name since; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before every commit, and twice as fast
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def require_in_place(path: Path, identity: Identity) -> None:
    """What is written to a file that was moved or deleted would be lost. Raises LedgerError."""
    if identity_of(path) != identity:
        raise LedgerError(
            f"the ledger {path} was moved or replaced while it was in use",
            hint="see what became of it, then run the same command again",
        )


def find_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    """The account's ID; one that nothing has where the ledger knows no such account."""
    query = "SELECT id FROM account WHERE base_url = ? AND client_id = ?"
    row = connection.execute(query, (base_url, client_id)).fetchone()
    return _NO_ACCOUNT if row is None else sound_id(row[0])


def _require_not_emptied(path: Path) -> None:
    """SQLite takes an empty file for a new one, and deletes the write-ahead log beside it.

    A ledger is never empty: it comes into being whole. So this is what a crash has left.
    """
    try:
        is_empty = path.stat().st_size == 0
    except FileNotFoundError:
        return
    if is_empty:
        raise corrupt("the file is empty")
