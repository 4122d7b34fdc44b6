"""A damaged ledger: found before anything is sent, and set aside, never overwritten."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.files import locked
from dkimctl.ledger.connecting import Identity, beside, identity_of
from dkimctl.ledger.faults import corrupt, is_damage

_MARK = ".damaged-"
_SIDES = ("-wal", "-shm", "-journal", "")  # the file itself last: an interruption loses nothing


def set_aside(path: Path) -> Path | None:
    """A damaged ledger that lies beside the one at `path`; the newest. Raises OSError."""
    try:
        found = [near for near in path.parent.iterdir() if near.name.startswith(path.name + _MARK)]
    except FileNotFoundError:
        return None
    return max((near for near in found if not near.name.endswith(_SIDES[:-1])), default=None)


def require_sound(connection: sqlite3.Connection) -> None:
    """Look at every page. Raises sqlite3.Error where one is damaged.

    100,000 registrations (64 MB) take 0.1 s where they are cached, 1.5 s from a slow disk.
    """
    finding = connection.execute("PRAGMA quick_check (1)").fetchone()[0]
    if finding != "ok":
        raise corrupt(" ".join(finding.split()))


@contextlib.contextmanager
def setting_aside(
    path: Path, clock: Callable[[], float], close: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Where the ledger at `path` proves damaged, `close` it, move it, and raise LedgerError."""
    found = identity_of(path)
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        close()  # Windows renames no open file
        raise _set_aside(path, found, error, clock()) from error


def _set_aside(path: Path, found: Identity, error: sqlite3.Error, now: float) -> LedgerError:
    said = f"the ledger {path} is damaged: {error}"
    try:
        with locked(path):
            # Another process may have moved it already, and begun a new one.
            if identity_of(path) != found:
                return LedgerError(
                    f"{said}; another run of dkimctl has moved it, and nothing was sent",
                    hint="run the same command again",
                )
            aside = _move(path, now)
    except OSError as fault:
        return LedgerError(
            f"{said}; it cannot be set aside: {fault.strerror or fault}; nothing was sent",
            hint=f"end other runs of dkimctl, move {path} and what is beside it elsewhere, and "
            "restore a backup",
        )
    return LedgerError(
        f"{said}; it was set aside as {aside}, and nothing was sent",
        hint=f"restore a backup as {path.name} and move {aside.name} away, or register again: an "
        "entry with a selector is answered with its data; one without could be registered twice, "
        "and stays unknown until --retry-unknown",
    )


def _move(path: Path, now: float) -> Path:
    aside = _free_name(path, time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)))
    for side in _SIDES:
        with contextlib.suppress(FileNotFoundError):
            beside(path, side).rename(beside(aside, side))
    return aside


def _free_name(path: Path, stamp: str) -> Path:
    name = beside(path, _MARK + stamp)
    numbered = (beside(path, f"{_MARK}{stamp}.{number}") for number in itertools.count(2))
    while any(os.path.lexists(beside(name, side)) for side in _SIDES):
        name = next(numbered)
    return name
