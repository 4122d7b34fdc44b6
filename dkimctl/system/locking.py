"""Locking files against other processes."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path


def lock_file_of(path: Path) -> Path:
    """The file that `locked` locks for the one at `path`."""
    return path.with_suffix(".lock")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file at `path` against other processes, from reading to replacing it.

    Its directory exists. Raises OSError, among them TimeoutError if another process holds the lock
    for five seconds.
    """
    import filelock

    lock = filelock.FileLock(lock_file_of(path), timeout=5, mode=0o600)
    try:
        acquired = lock.acquire()
    except filelock.Timeout:
        reason = f"another process holds the lock {lock.lock_file}"
        raise TimeoutError(errno.ETIMEDOUT, reason) from None
    with acquired:
        yield
