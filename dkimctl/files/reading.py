"""Reading files of limited size."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path


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
