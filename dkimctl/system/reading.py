"""Opening files that must be regular, and reading them within limits."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path


def read_regular(path: Path, max_size: int, *, check: Callable[[os.stat_result], None]) -> bytes:
    """The content of a regular file of at most `max_size` bytes. Raises OSError for any other.

    Symbolic links are refused as well. `check` gets the status of the very file that is read, and
    may raise.
    """
    with open(path, "rb", opener=open_without_following) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        check(status)
        data = file.read(max_size + 1)
    if len(data) > max_size:
        raise OSError(errno.EFBIG, "file too large")
    return data


def open_without_following(path: str, flags: int) -> int:
    """An opener for `open` that neither follows a symbolic link nor waits at a FIFO.

    A file that it creates gets mode 0600, whatever the umask.
    """
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    if flags & os.O_CREAT and sys.platform != "win32":
        os.fchmod(descriptor, 0o600)  # the umask may have removed more
    return descriptor
