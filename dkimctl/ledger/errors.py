"""Errors of SQLite and the file system, translated into LedgerError."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from dkimctl.errors import LedgerError

_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_UNREACHABLE = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM))
_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
_NO_SPACE = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_NO_ACCESS = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST))
# Another state directory alone would mean another, empty ledger: this one has to move with it.
_OR_MOVE = "or move the ledger to another directory and set DKIMCTL_STATE_DIR to that"


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise LedgerError for any error of SQLite or the file system with the ledger at `path`."""
    try:
        yield
    except (OSError, sqlite3.Error, OverflowError, UnicodeError) as error:
        raise _translated(path, error) from error


def damage_error(reason: str) -> sqlite3.DatabaseError:
    """An error for damage that SQLite itself does not notice."""
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def require_row_id(value: object) -> int:
    """The ID of a row. Raises sqlite3.DatabaseError unless it is an integer."""
    if isinstance(value, int):
        return value
    raise damage_error("a row in it has no ID")


def is_damage(error: Exception) -> bool:
    """Whether SQLite reports that the file is damaged or not a database."""
    return primary_code(error) in _DAMAGED


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 for any other error."""
    return _extended_code(error) & 0xFF


def no_space_error(path: Path, reason: object) -> LedgerError:
    return LedgerError(
        f"not enough space for the ledger {path}: {reason}",
        hint=f"free space at {path.parent}, {_OR_MOVE}",
    )


def _translated(path: Path, error: Exception) -> LedgerError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    if is_damage(error):
        return LedgerError(
            f"the ledger {path} is damaged: {reason}",
            hint=f"restore a backup as {path.name}; the next `dkimctl register` quarantines a "
            "damaged ledger and says how to continue",
        )
    if _is_no_space(error):
        return no_space_error(path, reason)
    if _is_no_access(error):
        return LedgerError(
            f"cannot use the ledger {path}: {reason}",
            hint=f"check that you can read and write in the directory {path.parent}, {_OR_MOVE}",
        )
    if primary_code(error) in _BUSY:
        return LedgerError(
            f"the ledger {path} is locked by another program: {reason}",
            hint="run the same command again when that program has finished",
        )
    return LedgerError(
        f"cannot use the ledger {path}: {reason}",
        hint=f"check that the disk of {path.parent} is healthy and not full, {_OR_MOVE}",
    )


def _is_no_space(error: Exception) -> bool:
    # SQLITE_IOERR_SHMSIZE is what opening the file raises on a full disk.
    if _extended_code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return True
    return primary_code(error) == sqlite3.SQLITE_FULL or _errno(error) in _NO_SPACE


def _is_no_access(error: Exception) -> bool:
    return primary_code(error) in _UNREACHABLE or _errno(error) in _NO_ACCESS


def _extended_code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))


def _errno(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None
