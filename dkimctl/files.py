"""Write files so that they are whole, or as they were."""

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

# Windows keeps a user's files from others by access lists; owner and mode say nothing there.
if sys.platform == "win32":

    def is_own(_status: os.stat_result) -> bool:
        return True

    def is_private(_status: os.stat_result) -> bool:
        return True

    def lets_others_replace(_status: os.stat_result) -> bool:
        return False

else:

    def is_own(status: os.stat_result) -> bool:
        """Whether a file belongs to the user."""
        return status.st_uid == os.geteuid()

    def is_private(status: os.stat_result) -> bool:
        """Whether nobody but the owner can use a file."""
        return not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)

    def lets_others_replace(status: os.stat_result) -> bool:
        """Whether others can put files of theirs in place of those in a directory."""
        if status.st_uid not in (os.geteuid(), 0):
            return True
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return bool(others_write) and not status.st_mode & stat.S_ISVTX


def read_regular(
    path: Path,
    largest: int,
    *,
    follow: bool = True,
    check: Callable[[os.stat_result], None] = lambda status: None,
) -> bytes:
    """What is in a file. Raises OSError, also where it is larger, or a FIFO or the like.

    Unless it is to `follow` symbolic links, one is no file either. `check` may raise for what it
    finds in the status of the file that is then read, and not of one put there since.
    """
    more = getattr(os, "O_NONBLOCK", 0)  # or a FIFO would wait for its writer
    if not follow:
        more |= getattr(os, "O_NOFOLLOW", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | more)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        check(status)
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, "it is far too large")
    return data


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file at `path` between reading and replacing it.

    The directory is made, for the owner alone, where there is none. Raises OSError, also
    (TimeoutError) when another process holds on to the file for five seconds.
    """
    import filelock

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = filelock.FileLock(path.with_suffix(".lock"), timeout=5, mode=0o600)
    try:
        held = lock.acquire()
    except filelock.Timeout:
        reason = f"another process holds {lock.lock_file}"
        raise TimeoutError(errno.ETIMEDOUT, reason) from None
    with held:
        yield


def replace_text(path: Path, text: str) -> None:
    """Put `text` into a file that its owner alone can read, whole or not at all.

    Raises OSError.
    """
    with replacing(path, mode=0o600) as file:
        file.write(text)


@contextlib.contextmanager
def replacing(path: Path, *, mode: int | None = None) -> Iterator[TextIO]:
    """A text file to write, which at the end takes the place of the one at `path`.

    It is whole then, or, after an error, as it was. Who may use it: `mode`, or who could
    before, or what the umask says. What is no regular file, such as /dev/stdout, is written
    as it is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    import secrets

    path = Path(os.path.realpath(path))  # a link stays one
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
    """What processes that were killed left beside the file at `path` while they replaced it."""
    name = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{8}}")
    return [found for found in path.parent.iterdir() if name.fullmatch(found.name)]


def sync_directory(directory: Path) -> None:
    """Make the names of new files last; Windows opens no directories, and needs none of this."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
