"""Locking files against other processes."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dkimctl.system.reading import open_without_following

_HELD = (errno.EAGAIN, errno.EACCES)  # by another process; file systems differ
_POLL_SECONDS = 0.05


def lock_file_of(path: Path) -> Path:
    """The file that `locked` locks for the one at `path`."""
    return path.with_suffix(".lock")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file at `path` against other processes, from reading to replacing it.

    Its directory exists. Raises OSError, among them TimeoutError if another process holds the lock
    for five seconds.
    """
    unlock = wait_for_lock(lock_file_of(path), seconds=5)
    try:
        yield
    finally:
        unlock()


def wait_for_lock(path: Path, *, seconds: float = math.inf) -> Callable[[], None]:
    """Lock as `try_lock` does, as soon as possible. Raises OSError, also TimeoutError."""
    deadline = time.monotonic() + seconds
    while (unlock := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"another process holds the lock {path}")
        time.sleep(_POLL_SECONDS)
    return unlock


def try_lock(path: Path) -> Callable[[], None] | None:
    """Lock the file at `path`, created if it is missing; None if another process has locked it.

    The returned function unlocks it. The operating system does so at the end of the process.
    Raises OSError if there is no such lock here.
    """
    if sys.platform == "win32":
        return _try_filelock(path)
    import fcntl  # filelock locks it the same way, but takes 20 ms to import

    descriptor = open_without_following(str(path), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError) and error.errno in _HELD:
            return None
        raise
    return lambda: os.close(descriptor)


def _try_filelock(path: Path) -> Callable[[], None] | None:
    import filelock

    # filelock's fallback is a file whose existence is the lock: a killed process would leave it.
    lock = filelock.FileLock(path, mode=0o600, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return None
    return lock.release
