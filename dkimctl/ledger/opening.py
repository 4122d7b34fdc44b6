"""Open the ledger's file: for writing (creates and migrates it), or read-only, as it is."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from dkimctl.errors import LedgerError
from dkimctl.ledger.errors import damage_error, primary_code, require_row_id
from dkimctl.ledger.schema import migrate, migrated_copy, version_of
from dkimctl.system.databases import sqlite_uri
from dkimctl.system.directories import prepare_directory
from dkimctl.system.locking import lock_file_of
from dkimctl.system.ownership import Fault, fault_of, refuse
from dkimctl.system.writing import publish

_BUSY_SECONDS = 10
_WAL_SECONDS = 1
_NO_ACCOUNT = -1
# What SQLite reports where it cannot create its side files (-wal, -shm).
_NO_SIDE_FILES = frozenset(
    (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
)


class OpenedAccount(NamedTuple):
    """A connection, and the ID of the account in the `account` table."""

    connection: sqlite3.Connection
    account_id: int


def open_for_writing(path: Path, base_url: str, client_id: str) -> OpenedAccount:
    """Open the file, created and migrated as needed, and add the account if it is missing.

    Raises LedgerError, OSError and sqlite3.Error.
    """
    prepare_directory(path.parent)
    refuse(ledger_fault(path), LedgerError)
    _create_if_missing(path)
    connection = _connect(path, "mode=rw")
    try:
        version_of(connection, path)  # raises before anything in a newer file is changed
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")  # KiB: the indexes of 100,000 answers
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS leaves data in the drive
        with connection:
            # IMMEDIATE, since two processes may open the same old file.
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, path)
            account_id = _add_account(connection, base_url, client_id)
    except BaseException:
        connection.close()
        raise
    return OpenedAccount(connection, account_id)


def open_read_only(path: Path, base_url: str, client_id: str) -> OpenedAccount:
    """Open the file as it is, or an empty database in memory if it is missing.

    Raises LedgerError, OSError and sqlite3.Error.
    """
    refuse(ledger_fault(path), LedgerError)
    connection = _connect_read_only(path)
    try:
        connection = migrated_copy(connection, path)
        account_id = _find_account(connection, base_url, client_id)
    except BaseException:
        connection.close()
        raise
    return OpenedAccount(connection, account_id)


def side_file(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps next to the one at `path`; `suffix` is `-wal` or the like."""
    return path.with_name(path.name + suffix)


def size_of(path: Path) -> int:
    """In bytes; 0 if the file is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def ledger_fault(path: Path) -> Fault | None:
    side_files = (side_file(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
    return fault_of(path, *side_files, lock_file_of(path))


def _connect(path: Path, parameters: str) -> sqlite3.Connection:
    """Connect with these SQLite URI parameters. The driver itself begins no transactions."""
    # SQLite treats an empty file as a new database and deletes the write-ahead log next to it.
    # A ledger is never empty, since it is created whole: this is what a crash has left.
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == 0:
            raise damage_error("the file is empty")
    return sqlite3.connect(
        f"{sqlite_uri(path.as_uri())}?{parameters}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
    )


def _connect_read_only(path: Path) -> sqlite3.Connection:
    try:
        path.stat()
    except FileNotFoundError:
        return sqlite3.connect(":memory:", isolation_level=None)
    try:
        return _connect_and_read(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _NO_SIDE_FILES:
            raise
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK and _undo_killed_change(path):
            return _connect_and_read(path, "mode=ro")
        _require_no_log(path, error)
    # Safe, as nothing can write here and the log is empty.
    return _connect_and_read(path, "mode=ro&immutable=1")


def _undo_killed_change(path: Path) -> bool:
    """Whether half of a change, which a kill has left where there is no log, could be undone."""
    try:
        _connect_and_read(path, "mode=rw").close()
    except sqlite3.OperationalError:  # nothing can be written here
        return False
    return True


def _connect_and_read(path: Path, parameters: str) -> sqlite3.Connection:
    connection = _connect(path, parameters)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # only this opens the file
    except BaseException:
        connection.close()
        raise
    return connection


def _require_no_log(path: Path, error: sqlite3.Error) -> None:
    """Raise LedgerError if the latest changes are not in the file yet."""
    for log in (side_file(path, "-wal"), side_file(path, "-journal")):
        if size_of(log):
            raise LedgerError(
                f"cannot read the ledger {path}: {error}, and {log.name} holds changes to it",
                hint=f"make {path.parent} writable, or copy {path.name} and {log.name} to another "
                "directory and set DKIMCTL_STATE_DIR to that",
            ) from error


def _create_if_missing(path: Path) -> None:
    """Create the file for its owner alone, and whole: a kill leaves no empty ledger behind.

    An existing file is not opened, as closing it would release SQLite's locks on it (POSIX).
    """
    if path.exists():
        return
    if size_of(log := side_file(path, "-wal")):
        raise LedgerError(
            f"the ledger {path} is missing, though {log.name} holds changes to it",
            hint=f"put {path.name} back next to it, or move {log.name} elsewhere",
        )
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    os.close(descriptor)
    new = Path(name)
    try:
        new.chmod(0o600)  # the umask may have removed more
        _create_tables(new)
        with contextlib.suppress(FileExistsError):  # another process has created it first
            publish(new, path)
    finally:
        new.unlink(missing_ok=True)


def _create_tables(new: Path) -> None:
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN")
        migrate(connection, new)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers continue during a write.

    SQLite changes the mode only while no other process uses the file, and does not wait for that.
    Without the log the data is as safe, and the next process to open the file tries again.
    """
    deadline = time.monotonic() + _WAL_SECONDS
    while not _has_write_ahead_log(connection) and time.monotonic() < deadline:
        time.sleep(0.01)


def _has_write_ahead_log(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _add_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    # Also if it is there: only a write makes SQLite report that the file is read-only.
    insert = "INSERT OR IGNORE INTO account (base_url, client_id) VALUES (?, ?)"
    connection.execute(insert, (base_url, client_id))
    return _find_account(connection, base_url, client_id)


def _find_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    """The account's ID, or one that no row has if the account is not in the ledger."""
    query = "SELECT id FROM account WHERE base_url = ? AND client_id = ?"
    row = connection.execute(query, (base_url, client_id)).fetchone()
    return _NO_ACCOUNT if row is None else require_row_id(row[0])
