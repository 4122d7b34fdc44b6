"""Open the ledger to write it: make the file, bring it to the present version."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.files import sync_directory
from dkimctl.ledger.connecting import beside, connect, find_account, size_of
from dkimctl.ledger.faults import primary_code
from dkimctl.ledger.schema import migrate, version_of

_WAL_SECONDS = 1


def open_for_writing(path: Path, base_url: str, client_id: str) -> tuple[sqlite3.Connection, int]:
    """The file, made and migrated as needed, and the ID of the account in it.

    Raises LedgerError, OSError and sqlite3.Error.
    """
    _make_file(path)
    connection = connect(path, "mode=rw")
    try:
        version_of(connection, path)  # before anything is changed in a newer file
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")  # KiB: the indexes of 100,000 answers
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS leaves data in the drive
        with connection:
            # For writing from the start, since two processes may come to the same old file.
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, path)
            account = _add_account(connection, base_url, client_id)
    except BaseException:
        connection.close()
        raise
    return connection, account


def _make_file(path: Path) -> None:
    """Make the file, if there is none, for its owner alone, and whole at once.

    A kill in the midst leaves no empty file that looks like a ledger which lost everything.
    One that is there is not opened: to close it again would drop SQLite's locks on it (POSIX).
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    if size_of(log := beside(path, "-wal")):
        raise LedgerError(
            f"the ledger {path} is missing, though {log.name} holds changes to it",
            hint=f"put {path.name} back beside it, or move {log.name} elsewhere",
        )
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    os.close(descriptor)
    new = Path(name)
    try:
        _fill(new)
        _publish(new, path)
    finally:
        new.unlink(missing_ok=True)


def _fill(new: Path) -> None:
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN")
        migrate(connection, new)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _publish(new: Path, path: Path) -> None:
    """Give `new` its name, unless another process was quicker."""
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        if not path.exists():
            new.rename(path)
    sync_directory(path.parent)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers go on while one writes.

    SQLite makes the change only while nobody else is at the file, and does not wait for that.
    Without it the data is as safe, and whoever opens the file next asks again.
    """
    patience = time.monotonic() + _WAL_SECONDS
    while not _is_changed(connection) and time.monotonic() < patience:
        time.sleep(0.01)


def _is_changed(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _add_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    # Though it is mostly there: that a file is read-only, SQLite says when it is to write.
    insert = "INSERT OR IGNORE INTO account (base_url, client_id) VALUES (?, ?)"
    connection.execute(insert, (base_url, client_id))
    return find_account(connection, base_url, client_id)
