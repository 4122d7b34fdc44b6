"""Write files so that they are whole, or as they were."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file at `path` between reading and replacing it.

    The directory is made, for the owner alone, where there is none. Raises OSError, also
    (TimeoutError) when another process holds on to the file for ten seconds.
    """
    import filelock

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock"), timeout=10, mode=0o600):
        yield


def replace_text(path: Path, text: str) -> None:
    """Put `text` into a file that its owner alone can read, whole or not at all.

    Raises OSError.
    """
    import tempfile

    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names of new files last; Windows opens no directories, and needs none of this."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
