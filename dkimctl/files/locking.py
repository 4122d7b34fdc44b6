"""Locking files against other processes."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file at `path` against other processes, from reading to replacing it.

    Creates a missing directory, for the owner only. Raises OSError, among them TimeoutError if
    another process holds the lock for five seconds.
    """
    import filelock

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = filelock.FileLock(path.with_suffix(".lock"), timeout=5, mode=0o600)
    try:
        acquired = lock.acquire()
    except filelock.Timeout:
        reason = f"another process holds the lock {lock.lock_file}"
        raise TimeoutError(errno.ETIMEDOUT, reason) from None
    with acquired:
        yield
