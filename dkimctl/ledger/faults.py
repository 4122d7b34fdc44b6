"""What SQLite and the file system say about the ledger, told as a LedgerError."""

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
# Another state directory has another ledger: to name one is no way on without moving this.
_OR_MOVE = "or move the ledger to another directory and name that in DKIMCTL_STATE_DIR"


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn what the file system and SQLite say of the ledger at `path` into a LedgerError."""
    try:
        yield
    except (OSError, sqlite3.Error, OverflowError, UnicodeError) as error:
        raise _told(path, error) from error


def corrupt(reason: str) -> sqlite3.DatabaseError:
    """Damage that SQLite does not raise itself, in its terms."""
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def sound_id(found: object) -> int:
    """The ID of a row. Raises sqlite3.Error where damage has made it anything but a number."""
    if isinstance(found, int):
        return found
    raise corrupt("a row in it has no ID")


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that the file is damaged, or no database at all."""
    return primary_code(error) in _DAMAGED


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 where the error is none of SQLite's."""
    return _extended_code(error) & 0xFF


def no_space(path: Path, reason: object) -> LedgerError:
    return LedgerError(
        f"there is no space for the ledger {path}: {reason}",
        hint=f"free space at {path.parent}, {_OR_MOVE}",
    )


def _told(path: Path, error: Exception) -> LedgerError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    if is_damage(error):
        return LedgerError(
            f"the ledger {path} is damaged: {reason}",
            hint=f"restore a backup as {path.name}; the next `dkimctl register` sets a damaged "
            "ledger aside and says how to go on",
        )
    if _is_no_space(error):
        return no_space(path, reason)
    if _is_no_access(error):
        return LedgerError(
            f"cannot use the ledger {path}: {reason}",
            hint=f"see that {path.parent} is a directory where you can read and write, {_OR_MOVE}",
        )
    if primary_code(error) in _BUSY:
        return LedgerError(
            f"the ledger {path} is held by another program: {reason}",
            hint="run the same command again once that program is done",
        )
    return LedgerError(
        f"cannot use the ledger {path}: {reason}",
        hint=f"see that the disk of {path.parent} is sound and not full, {_OR_MOVE}",
    )


def _is_no_space(error: Exception) -> bool:
    # SQLITE_IOERR_SHMSIZE is how a full disk looks where the file is opened.
    if _extended_code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return True
    return primary_code(error) == sqlite3.SQLITE_FULL or _errno(error) in _NO_SPACE


def _is_no_access(error: Exception) -> bool:
    return primary_code(error) in _UNREACHABLE or _errno(error) in _NO_ACCESS


def _extended_code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))


def _errno(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None
