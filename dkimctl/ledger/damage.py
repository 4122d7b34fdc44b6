"""A damaged ledger: finding it, and quarantining it.

It is moved to `ledger.db.damaged-TIME`, never overwritten.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.ledger.errors import damage_error, is_damage
from dkimctl.ledger.opening import side_file
from dkimctl.system.file_identity import FileIdentity, file_identity
from dkimctl.system.locking import locked

_INFIX = ".damaged-"
_SUFFIXES = ("-wal", "-shm", "-journal", "")  # the file itself last: an interruption loses nothing


def require_in_place(path: Path, identity: FileIdentity | None) -> None:
    """Raise LedgerError if the file was moved or deleted: what is written now would be lost."""
    if file_identity(path) != identity:
        raise LedgerError(
            f"the ledger {path} was moved or replaced while it was in use",
            hint="find out what moved it, then run the same command again",
        )


def require_sound(connection: sqlite3.Connection) -> None:
    """Check every page. Raises sqlite3.DatabaseError if one is damaged.

    100,000 registrations (64 MB) take 0.1 s if they are cached, 1.5 s from a slow disk.
    """
    result = connection.execute("PRAGMA quick_check (1)").fetchone()[0]
    if result != "ok":
        raise damage_error(" ".join(result.split()))


def find_quarantined(path: Path) -> Path | None:
    """The newest quarantined ledger next to the one at `path`, if any. Raises OSError."""
    prefix = path.name + _INFIX
    try:
        siblings = [sibling for sibling in path.parent.iterdir() if sibling.name.startswith(prefix)]
    except FileNotFoundError:
        return None
    return max((file for file in siblings if not file.name.endswith(_SUFFIXES[:-1])), default=None)


@contextlib.contextmanager
def quarantining(
    path: Path, clock: Callable[[], float], close: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """If the ledger at `path` turns out to be damaged, `close` and move it; raises LedgerError."""
    identity = file_identity(path)
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        close()  # Windows renames no open file
        raise _quarantine(path, identity, error, clock()) from error


def _quarantine(
    path: Path, identity: FileIdentity | None, error: sqlite3.Error, now: float
) -> LedgerError:
    damage = f"the ledger {path} is damaged: {error}"
    try:
        with locked(path):
            # Another process may have moved it and begun a new one.
            if file_identity(path) != identity:
                return LedgerError(
                    f"{damage}; another run of dkimctl has moved it, and nothing was sent",
                    hint="run the same command again",
                )
            quarantined = _move(path, now)
    except OSError as failure:
        return LedgerError(
            f"{damage}; it cannot be quarantined: {failure.strerror or failure}; nothing was sent",
            hint=f"stop other runs of dkimctl, move {path} and the files next to it elsewhere, "
            "and restore a backup",
        )
    return LedgerError(
        f"{damage}; it was quarantined as {quarantined}, and nothing was sent",
        hint=f"restore a backup as {path.name} and move {quarantined.name} away, or register "
        "again: the service answers entries that have a selector with their data; entries without "
        "one could be registered twice, and stay unknown until --retry-unknown",
    )


def _move(path: Path, now: float) -> Path:
    target = _free_name(path, time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)))
    for suffix in _SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            side_file(path, suffix).rename(side_file(target, suffix))
    return target


def _free_name(path: Path, timestamp: str) -> Path:
    name = side_file(path, _INFIX + timestamp)
    numbered = (side_file(path, f"{_INFIX}{timestamp}.{number}") for number in itertools.count(2))
    while any(os.path.lexists(side_file(name, suffix)) for suffix in _SUFFIXES):
        name = next(numbered)
    return name
