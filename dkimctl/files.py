"""Reading, locking and atomically replacing files, some of them for their owner only."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

# On Windows, access lists protect a user's files; owner and mode say nothing.
if sys.platform == "win32":

    def is_own(_status: os.stat_result) -> bool:
        return True

    def is_private(_status: os.stat_result) -> bool:
        return True

    def lets_others_replace(_status: os.stat_result) -> bool:
        return False

else:

    def is_own(status: os.stat_result) -> bool:
        """Whether a file belongs to this user."""
        return status.st_uid == os.geteuid()

    def is_private(status: os.stat_result) -> bool:
        """Whether only its owner can access a file."""
        return not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)

    def lets_others_replace(status: os.stat_result) -> bool:
        """Whether other users can replace the files in a directory."""
        if status.st_uid not in (os.geteuid(), 0):
            return True
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return bool(others_write) and not status.st_mode & stat.S_ISVTX


def read_regular(
    path: Path,
    max_size: int,
    *,
    follow: bool = True,
    check: Callable[[os.stat_result], None] = lambda status: None,
) -> bytes:
    """The content of a regular file of at most `max_size` bytes. Raises OSError for any other.

    Without `follow`, symbolic links are refused as well. `check` gets the status of the very file
    that is read, even if another replaces it meanwhile, and may raise.
    """
    extra = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO would wait for a writer
    if not follow:
        extra |= getattr(os, "O_NOFOLLOW", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | extra)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        check(status)
        data = file.read(max_size + 1)
    if len(data) > max_size:
        raise OSError(errno.EFBIG, "file too large")
    return data


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


def write_private(path: Path, text: str) -> None:
    """Atomically write a file that only its owner can read. Raises OSError."""
    with atomic_writer(path, mode=0o600) as file:
        file.write(text)


@contextlib.contextmanager
def atomic_writer(path: Path, *, mode: int | None = None) -> Iterator[TextIO]:
    """A text file to write, which replaces the one at `path` at the end, or not at all on error.

    Its permissions are `mode`, else those of the replaced file, else set by the umask. Anything
    but a regular file, such as /dev/stdout, is written directly. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    import secrets

    path = Path(os.path.realpath(path))  # a symbolic link remains one
    if mode is None and path.exists():
        mode = path.stat().st_mode & 0o777
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 & (mode or 0o666))
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            yield file
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def leftovers_of(path: Path) -> list[Path]:
    """The temporary files of processes that were killed while they replaced the file at `path`."""
    name = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{8}}")
    return [file for file in path.parent.iterdir() if name.fullmatch(file.name)]


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable; Windows can neither sync directories nor needs it."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
