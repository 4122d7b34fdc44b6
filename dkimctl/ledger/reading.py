"""Open the ledger to read it only: nothing is made, changed or waited for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.ledger.connecting import beside, connect, find_account, size_of
from dkimctl.ledger.faults import primary_code
from dkimctl.ledger.schema import complete

# How it looks where the files that SQLite keeps beside a database cannot be made.
_NO_SIDE_FILES = frozenset(
    (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
)


def open_for_reading(path: Path, base_url: str, client_id: str) -> tuple[sqlite3.Connection, int]:
    """The file as it is, or an empty stand-in where there is none, and the account's ID in it.

    Raises LedgerError, OSError and sqlite3.Error.
    """
    connection = _connect(path)
    try:
        complete(connection, path)
        account = find_account(connection, base_url, client_id)
    except BaseException:
        connection.close()
        raise
    return connection, account


def _connect(path: Path) -> sqlite3.Connection:
    try:
        path.stat()
    except FileNotFoundError:
        return sqlite3.connect(":memory:", isolation_level=None)
    try:
        return _connect_as(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _NO_SIDE_FILES:
            raise
        _require_no_log(path, error)
    # Nobody else can be at the file, and nothing of it is elsewhere.
    return _connect_as(path, "mode=ro&immutable=1")


def _connect_as(path: Path, parameters: str) -> sqlite3.Connection:
    connection = connect(path, parameters)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # opens the file at last
    except BaseException:
        connection.close()
        raise
    return connection


def _require_no_log(path: Path, error: sqlite3.Error) -> None:
    """Refuse a file whose latest changes are not in it yet."""
    for log in (beside(path, "-wal"), beside(path, "-journal")):
        if size_of(log):
            raise LedgerError(
                f"cannot read the ledger {path}: {error}, and {log.name} holds changes to it",
                hint=f"make {path.parent} writable, or copy {path.name} and {log.name} to another "
                "directory and name that in DKIMCTL_STATE_DIR",
            ) from error
