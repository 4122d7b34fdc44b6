"""Open the ledger's file: for writing (creates and migrates it), or read-only, as it is.

A damaged file is quarantined: moved to `ledger.db.damaged-TIME`, never overwritten. Errors of
SQLite and the file system become LedgerErrors.
"""

# ruff: noqa: S608 - what queries are made of are constants

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dkimctl import files
from dkimctl.addresses import parse_url
from dkimctl.errors import LedgerError, UsageError
from dkimctl.ledger.intents import select_open_requests, update_requests
from dkimctl.ledger.tables import (
    ADD_ACCOUNT,
    IS_OURS,
    OF_ACCOUNT,
    STEPS,
    damage_error,
    find_account,
)

# What SQLite reports where it cannot create its side files (-wal, -shm).
_NO_SIDE_FILES = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
)  # fmt: skip
_UNREACHABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_NO_SPACE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
# Another state directory alone would mean another, empty ledger: this one has to move with it.
_OR_MOVE = "or move the ledger to another directory and set DKIMCTL_STATE_DIR to that"
_INFIX = ".damaged-"
_SUFFIXES = ("-wal", "-shm", "-journal", "")  # the file itself last: an interruption loses nothing
# Measured: an answer with a 2048-bit key, and its event, add 750 to 850 bytes to the file. A commit
# also writes every page it changed to the write-ahead log: those of the answer and of its event,
# and at worst one of each index.
# The log grows to 4 MiB before SQLite starts it over.
_BYTES_OF_ANSWER = 950
_BYTES_IN_LOG = 4 * 4096
_FULL_LOG = 4 << 20
_VERSION = len(STEPS)
# ?1 and ?2 are the account that goes and the one that stays.
_SUPERSEDED = """
SELECT
  iif(
    (gone.value IS NOT NULL, coalesce(julianday(gone.regist_date), 0))
    > (kept.value IS NOT NULL, coalesce(julianday(kept.regist_date), 0)),
    kept.account_id, gone.account_id),
  sign_domain, selector
FROM registration AS gone JOIN registration AS kept USING (sign_domain, selector)
WHERE gone.account_id = ?1 AND kept.account_id = ?2
"""


class SqliteStore:
    """The open file of a ledger; `Database` in `postgresql.py` has the same methods.

    One SQL fits both: ?1 and ? for values, names without regard to case, and no functions that
    only one of them has.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, clock: Callable[[], float] = time.time
    ) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.close = connection.close
        self._connection = connection
        self._path = path
        self._identity = files.file_identity(path)
        self._clock = clock

    def select_each(self, query: str, rows: Iterable[Sequence[Any]]) -> list[Any]:
        """The first row of a query, or None, for each row of values."""
        return [self._connection.execute(query, row).fetchone() for row in rows]

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Insert a row; returns its ID."""
        return self._connection.execute(statement, values).lastrowid or 0

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, durable at the end, and no other writer in between."""
        self._require_in_place()
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _require_in_place(self) -> None:
        """Raise LedgerError if the file was moved or deleted: what is written would be lost."""
        if files.file_identity(self._path) != self._identity:
            raise LedgerError(
                f"the ledger {self._path} was moved or replaced while it was in use",
                hint="find out what moved it, then run the same command again",
            )

    def translating(self) -> contextlib.AbstractContextManager[None]:
        return translate_errors(self._path)

    def check(self, account_id: int) -> None:
        self._require_in_place()
        with quarantining(self._path, self._clock, self.close):
            self.verify(account_id)

    def verify(self, account_id: int) -> None:
        """Check every page (0.1 to 1.5 s for 64 MB) and the account's open requests."""
        result = self._connection.execute("PRAGMA quick_check (1)").fetchone()[0]
        if result != "ok":
            raise damage_error(" ".join(result.split()))
        list(select_open_requests(self._connection, account_id))  # decodes all

    def find_quarantined(self) -> Path | None:
        """The newest quarantined ledger next to this one, if any."""
        prefix = self._path.name + _INFIX
        with self.translating(), contextlib.suppress(FileNotFoundError):
            paths = [each for each in self._path.parent.iterdir() if each.name.startswith(prefix)]
            paths = [each for each in paths if not each.name.endswith(_SUFFIXES[:-1])]
            return max(paths, default=None)
        return None

    def require_disk_space(self, entries: int) -> None:
        """Raise LedgerError unless there is space for this many answers."""
        with self.translating():
            log_growth = max(0, _FULL_LOG - size_of(side_file(self._path, "-wal")))
            needed = entries * (_BYTES_OF_ANSWER + _BYTES_IN_LOG) + log_growth
            disk = shutil.disk_usage(self._path.parent)
        if disk.total and disk.free < needed:  # some network file systems report no sizes
            megabytes = f"{needed / 1e6:.1f} MB, and only {disk.free / 1e6:.1f} MB are free"
            raise _no_space(self._path, f"the answers to {entries} entries may need {megabytes}")


def open_for_writing(path: Path, base_url: str, client_id: str) -> tuple[sqlite3.Connection, int]:
    """Open the file, created and migrated as needed; returns the ID of the account, too."""
    files.prepare_directory(path.parent)
    files.refuse(ledger_fault(path), LedgerError)
    _create_if_missing(path)
    connection = _connect(path, "mode=rw")
    with _closing_on_error(connection):
        version_of(connection, path)  # raises before anything in a newer file is changed
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # readers continue during a write
        except sqlite3.OperationalError as error:
            # Another process uses the file. The data is as safe; the next one to open it tries.
            if primary_code(error) != sqlite3.SQLITE_BUSY:
                raise
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")  # KiB: the indexes of 100,000 answers
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS leaves data in the drive
        with connection:
            # IMMEDIATE, since two processes may open the same old file.
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, path)
            # Also if it is there: only a write makes SQLite report that the file is read-only.
            connection.execute(ADD_ACCOUNT, (base_url, client_id))
            return connection, find_account(connection, base_url, client_id)


def open_read_only(path: Path, base_url: str, client_id: str) -> tuple[sqlite3.Connection, int]:
    """The same with the file as it is, or an empty database in memory if it is missing."""
    files.refuse(ledger_fault(path), LedgerError)
    connection = _connect_read_only(path)
    with _closing_on_error(connection):
        if version_of(connection, path) == _VERSION:
            return connection, find_account(connection, base_url, client_id)
    copy = sqlite3.connect(":memory:", isolation_level=None)
    with _closing_on_error(copy):
        with contextlib.closing(connection):
            connection.backup(copy)
        migrate(copy, path)
        return copy, find_account(copy, base_url, client_id)


def domains_with_prefix(
    path: Path, base_url: str, client_id: str, prefix: str, limit: int
) -> list[str]:
    """At most `limit` signing domains of an account that begin with `prefix`, sorted.

    If there are more, the last is among them, so that they begin with what all have in common,
    which a shell completes. Raises LedgerError, OSError and sqlite3.Error.
    """
    files.refuse(ledger_fault(path), LedgerError)
    query = f"SELECT DISTINCT sign_domain {OF_ACCOUNT} AND sign_domain >= ?3 AND sign_domain < ?4"
    query += f" AND {IS_OURS} ORDER BY sign_domain"
    values = (base_url, client_id, prefix, prefix + "\U0010ffff")
    with files.peeking(path) as connection:
        first = connection.execute(f"{query} LIMIT {limit}", values).fetchall()
        last = connection.execute(f"{query} DESC LIMIT 1", values).fetchall()
    if len(first) == limit:
        first[-1:] = last
    return [domain for (domain,) in first]


def side_file(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps next to the one at `path`, such as that with the suffix `-wal`."""
    return path.with_name(path.name + suffix)


def size_of(path: Path) -> int:
    """In bytes; 0 if the file is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def ledger_fault(path: Path) -> files.Fault | None:
    side_files = (side_file(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
    return files.fault_of(path, *side_files, files.lock_file_of(path))


def _connect(path: Path, parameters: str) -> sqlite3.Connection:
    """Connect with these SQLite URI parameters. The driver itself begins no transactions."""
    # SQLite takes an empty file for a new database, and deletes the write-ahead log next to it. A
    # ledger is created whole: this is what a crash has left.
    if path.exists() and not size_of(path):
        raise damage_error("the file is empty")
    uri = f"{files.sqlite_uri(path.as_uri())}?{parameters}"
    connection = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None)
    with _closing_on_error(connection):
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # only this opens the file
    return connection


@contextlib.contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()  # Windows renames no open file
        raise


def _connect_read_only(path: Path) -> sqlite3.Connection:
    try:
        path.stat()  # raises OSError where `exists` may say no
    except FileNotFoundError:
        return sqlite3.connect(":memory:", isolation_level=None)
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _NO_SIDE_FILES:
            raise
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
            # A kill has left half of a change where there is no log: undo it, if we may write here.
            try:
                _connect(path, "mode=rw").close()
            except sqlite3.OperationalError:  # nothing can be written here
                pass
            else:
                return _connect(path, "mode=ro")
        # The latest changes may not be in the file yet.
        for log in (side_file(path, "-wal"), side_file(path, "-journal")):
            if size_of(log):
                raise LedgerError(
                    f"cannot read the ledger {path}: {error}, and {log.name} holds changes to it",
                    hint=f"make {path.parent} writable, or copy {path.name} and {log.name} to "
                    "another directory and set DKIMCTL_STATE_DIR to that",
                ) from error
    # Safe, as nothing can write here and the log is empty.
    return _connect(path, "mode=ro&immutable=1")


def _create_if_missing(path: Path) -> None:
    """Create the file for its owner alone, and whole: a kill leaves no empty ledger behind."""
    if path.exists():  # to open and close it would release SQLite's locks on it (POSIX)
        return
    if size_of(log := side_file(path, "-wal")):
        raise LedgerError(
            f"the ledger {path} is missing, though {log.name} holds changes to it",
            hint=f"put {path.name} back next to it, or move {log.name} elsewhere",
        )
    new = files.temporary_name(path)
    try:
        open(new, "xb", opener=files.open_without_following).close()  # with mode 0600
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN")
            migrate(connection, new)
            connection.execute("COMMIT")
        with contextlib.suppress(FileExistsError):  # another process has created it first
            files.publish(new, path)
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def quarantining(
    path: Path, clock: Callable[[], float], close: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """If the ledger at `path` turns out to be damaged, `close` and move it; raises LedgerError."""
    identity = files.file_identity(path)
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        close()  # Windows renames no open file
        damage = f"the ledger {path} is damaged: {error}"
        try:
            with files.locked(path):
                # Another process may have moved it and begun a new one.
                is_it = files.file_identity(path) == identity
                quarantined = _move_away(path, clock()) if is_it else None
        except OSError as failure:
            reason = failure.strerror or failure
            raise LedgerError(
                f"{damage}; it cannot be quarantined: {reason}; nothing was sent",
                hint=f"stop other runs of dkimctl, move {path} and the files next to it elsewhere, "
                "and restore a backup",
            ) from error
        if quarantined is None:
            raise LedgerError(
                f"{damage}; another run of dkimctl has moved it, and nothing was sent",
                hint="run the same command again",
            ) from error
        raise LedgerError(
            f"{damage}; it was quarantined as {quarantined}, and nothing was sent",
            hint=f"restore a backup as {path.name} and move {quarantined.name} away, or register "
            "again: the service answers entries that have a selector with their data; entries "
            "without one could be registered twice, and stay unknown until --retry-unknown",
        ) from error


def _move_away(path: Path, now: float) -> Path:
    quarantined = side_file(path, time.strftime(f"{_INFIX}%Y%m%dT%H%M%S", time.gmtime(now)))
    first, numbers = quarantined, itertools.count(2)
    while any(os.path.lexists(side_file(quarantined, suffix)) for suffix in _SUFFIXES):
        quarantined = side_file(first, f".{next(numbers)}")
    for suffix in _SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            side_file(path, suffix).rename(side_file(quarantined, suffix))
    return quarantined


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise LedgerError for any error of SQLite or the file system with the ledger at `path`."""
    try:
        yield
    except (OSError, sqlite3.Error, OverflowError, UnicodeError) as error:
        raise _translated(path, error) from error


def is_damage(error: Exception) -> bool:
    """Whether SQLite reports that the file is damaged or not a database."""
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 for any other error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _no_space(path: Path, reason: object) -> LedgerError:
    return LedgerError(
        f"not enough space for the ledger {path}: {reason}",
        hint=f"free space at {path.parent}, {_OR_MOVE}",
    )


def _translated(path: Path, error: Exception) -> LedgerError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    code, number = primary_code(error), getattr(error, "errno", None)
    # SQLITE_IOERR_SHMSIZE is what opening the file raises on a full disk.
    is_full = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE
    if is_full or code == sqlite3.SQLITE_FULL or number in _NO_SPACE:
        return _no_space(path, reason)
    what = f"cannot use the ledger {path}"
    hint = f"check that the disk of {path.parent} is healthy and not full, {_OR_MOVE}"
    if is_damage(error):
        what = f"the ledger {path} is damaged"
        hint = f"restore a backup as {path.name}; the next `dkimctl register` quarantines a "
        hint += "damaged ledger and says how to continue"
    elif code in _UNREACHABLE or number in _NO_ACCESS:
        hint = f"check that you can read and write in the directory {path.parent}, {_OR_MOVE}"
        hint = files.access_hint(path, hint)
    elif code in _BUSY:
        what = f"the ledger {path} is locked by another program"
        hint = "run the same command again when that program has finished"
    return LedgerError(f"{what}: {reason}", hint=hint)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file to the current version, within the caller's transaction."""
    version = version_of(connection, path)
    if version == _VERSION:
        return
    for step in STEPS[version:]:
        for statement in step.split(";"):
            connection.execute(statement)
    if version < 5:  # since this version
        _merge_equivalent_accounts(connection)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version. Raises LedgerError if it is newer than this program."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise LedgerError(
            f"the ledger {path} was written by a newer dkimctl",
            hint="upgrade dkimctl, or set DKIMCTL_STATE_DIR to another directory",
        )
    return version


def _merge_equivalent_accounts(connection: sqlite3.Connection) -> None:
    """Make every account's URL canonical, within the caller's transaction."""
    accounts = "SELECT id, base_url, client_id FROM account ORDER BY id"
    for account_id, base_url, client_id in connection.execute(accounts).fetchall():
        url = base_url
        with contextlib.suppress(UsageError):  # stays as it is
            url = str(parse_url(base_url)) if isinstance(base_url, str) else base_url
        if url == base_url:
            continue
        if (target := find_account(connection, url, client_id)) == -1:
            connection.execute("UPDATE account SET base_url = ? WHERE id = ?", (url, account_id))
        else:
            _merge(connection, account_id, target)


def _merge(connection: sqlite3.Connection, gone: int, kept: int) -> None:
    """Give all that the account `gone` has to the account `kept`."""
    superseded = connection.execute(_SUPERSEDED, (gone, kept)).fetchall()
    for table in ("registration", "history"):
        delete = f"DELETE FROM {table} WHERE account_id = ? AND sign_domain = ? AND selector = ?"
        connection.executemany(delete, superseded)
    for table in ("registration", "history", "open_request"):
        move = f"UPDATE OR IGNORE {table} SET account_id = ? WHERE account_id = ?"
        connection.execute(move, (kept, gone))
    connection.execute("DELETE FROM history WHERE account_id = ?", (gone,))
    connection.execute("DELETE FROM account WHERE id = ?", (gone,))
    # Close intents whose key is registered, or in a newer request.
    query = "SELECT lower(sign_domain), lower(selector) FROM registration WHERE account_id = ?"
    closed = {key for key in connection.execute(query, (kept,)) if key[1]}
    for request_id, intents in reversed(list(select_open_requests(connection, kept))):
        left = [intent for intent in intents if intent.key not in closed]
        closed.update(intent.key for intent in intents)
        if len(left) < len(intents):
            update_requests(connection, {request_id: left})
