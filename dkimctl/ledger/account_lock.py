"""One `register` an account at a time.

A killed holder leaves no stale lock: the operating system itself keeps the lock, and ends it
with the process. Who holds it stands in a note beside it, since Windows lets nobody read a
locked file. Does without `from __future__ import annotations`: see `dkimctl.models`.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import LedgerError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_POLL = 0.1  # seconds between two looks at a lock that another process holds
_LOOKS = 3  # at the note, before a holder that cannot be named is told of
_NOTE = re.compile(
    rb"([1-9]\d{0,9}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d)\n"  # process ID, since
)
_LONGEST_NOTE = 64  # bytes


class Holder(NamedTuple):
    """The process that has the lock, and since when (`YYYY-MM-DDThh:mm:ss±hh:mm`, local time).

    Where its note cannot be read, or is not its own, the process ID is None and `since` "".
    """

    pid: int | None
    since: str


_UNNAMED = Holder(None, "")


@contextlib.contextmanager
def account_lock(
    directory: Path, *, base_url: str, client_id: str, on_wait: Callable[[Holder], None]
) -> Iterator[None]:
    """Hold the lock of one account, whose file is in `directory` (made where there is none).

    While another process holds it, `on_wait` is called once and then this waits without
    bound; Ctrl-C ends the waiting. Raises LedgerError where there can be no lock.
    """
    name = _name(base_url, client_id)
    path, note = directory / f"{name}.lock", directory / f"{name}.holder"
    with _explained(path):
        lock = _new_lock(path)
        held = _try(lock)
    if not held:
        on_wait(_holder(note))
        with _explained(path):
            lock.acquire(poll_interval=_POLL)
    try:
        with _noted(note):
            yield
    finally:
        with contextlib.suppress(OSError):  # the end of the process ends the lock as well
            lock.release()


def _name(base_url: str, client_id: str) -> str:
    import hashlib
    import json

    account = json.dumps([base_url, client_id]).encode()
    return f"register-{hashlib.sha256(account).hexdigest()[:16]}"


def _new_lock(path: Path) -> "BaseFileLock":
    import filelock

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Never a file whose mere existence is the lock, as filelock falls back to: a killed
    # process would leave it behind.
    return filelock.FileLock(path, mode=0o600, fallback_to_soft=False)


def _try(lock: "BaseFileLock") -> bool:
    import filelock

    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return False
    return True


def _holder(note: Path) -> Holder:
    """Who holds the lock, as far as its note can be believed.

    One that has just got the lock may not have written its note yet, and what stands there is
    that of a process killed before. So a process that is not running here is not named; the
    note is read again instead, for a fifth of a second. What remains: within the milliseconds
    before the note is written, a process that was given the number of the killed one may be
    named (on Windows the killed one itself); and where containers share the directory, one
    that happens to have the number of a holder in another.
    """
    import time

    for look in range(_LOOKS):
        if look:
            time.sleep(_POLL)
        holder = _read(note)
        if holder.pid is not None and _may_hold(holder.pid):
            return holder
    return _UNNAMED


def _may_hold(pid: int) -> bool:
    """Whether that is another running process."""
    if pid == os.getpid():
        return False
    if sys.platform == "win32":  # os.kill would end that process
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError):
        return False
    return True


@contextlib.contextmanager
def _noted(note: Path) -> Iterator[None]:
    """Let the note name this process; to be entered with the lock held."""
    from datetime import datetime

    since = datetime.now().astimezone().isoformat(timespec="seconds")
    with _explained(note):
        _write(note, f"{os.getpid()} {since}\n".encode())
    try:
        yield
    finally:
        # One that stays is like that of a killed process.
        with contextlib.suppress(OSError):
            _write(note, b"")


def _write(note: Path, content: bytes) -> None:
    """Write in place: Windows replaces no file that another process is reading.

    Whoever reads half a note sees that by its form.
    """
    with open(note, "wb", opener=_open_unfollowed) as file:
        file.write(content)


def _read(note: Path) -> Holder:
    try:
        with open(note, "rb", opener=_open_unfollowed) as file:
            found = _NOTE.fullmatch(file.read(_LONGEST_NOTE))
    except OSError:
        return _UNNAMED
    return Holder(int(found[1]), found[2].decode()) if found else _UNNAMED


def _open_unfollowed(path: str, flags: int) -> int:
    """Open without following a link, and without waiting for the other end of a FIFO."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the file system says into a LedgerError."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"cannot lock the account with {error.filename or path}: {error.strerror or error}",
            hint="free or repair that place, or name another state directory in "
            "DKIMCTL_STATE_DIR, on a file system with locks",
        ) from error
