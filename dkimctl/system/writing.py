"""Replacing files as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TextIO


def write_private(path: Path, text: str) -> None:
    """Atomically write a file that only its owner can read. Raises OSError."""
    with atomic_writer(path, mode=0o600) as file:
        file.write(text)


def create_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, whatever the umask; or none, on error.

    Raises FileExistsError for a file that exists, or a link, and OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        path.chmod(0o600)  # the umask may have removed more
        sync_directory(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def atomic_writer(path: Path, *, mode: int | None = None) -> Iterator[TextIO]:
    """A text file to write, which replaces the one at `path` at the end, or not at all on error.

    Its permissions are `mode`, else those of the replaced file, else set by the umask. Anything
    but a regular file, such as /dev/stdout, is written directly. Raises OSError, also for a FIFO
    that nothing reads.
    """
    if path.exists() and not path.is_file():
        with open(path, "w", encoding="utf-8", newline="\n", opener=_open_at_once) as file:
            yield file
        return
    path = Path(os.path.realpath(path))  # a symbolic link remains one
    if mode is None and path.exists():
        mode = path.stat().st_mode & 0o777
    temporary = _temporary(path)
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


def publish(new: Path, path: Path) -> None:
    """Give a finished file the name `path` as well, unless something else has it.

    Raises FileExistsError and OSError.
    """
    try:
        os.link(new, path)  # to rename it would replace the other one
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        new.rename(path)
    sync_directory(path.parent)


def create_files(texts: Mapping[Path, str], *, private: Collection[Path] = ()) -> None:
    """Write new files: all, each as a whole, or none. Only their owner can read the `private` ones.

    Raises FileExistsError if one exists, or a link, and OSError.
    """
    with contextlib.ExitStack() as undo:
        finished = {}
        for path, text in texts.items():
            finished[path] = new = _temporary(path)
            undo.callback(new.unlink, missing_ok=True)
            with atomic_writer(new, mode=0o600 if path in private else None) as file:
                file.write(text)
        with contextlib.ExitStack() as published:
            for path, new in finished.items():
                publish(new, path)
                published.callback(path.unlink, missing_ok=True)
            published.pop_all()


def delete_leftovers(path: Path) -> None:
    """Delete the temporary files of processes that were killed while they replaced `path`.

    The caller holds the lock that keeps out running ones.
    """
    name = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{8}}")
    for file in path.parent.iterdir():
        if name.fullmatch(file.name):
            with contextlib.suppress(OSError):
                file.unlink()


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable; Windows can neither sync directories nor needs it."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_at_once(path: str, flags: int) -> int:
    """An opener for `open` that does not wait at a FIFO for a process that reads it."""
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nothing reads from it") from None
        raise
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return descriptor


def _temporary(path: Path) -> Path:
    """A name next to `path` that no file has; see `delete_leftovers`."""
    import secrets

    return path.with_name(f".{path.name}-{secrets.token_hex(4)}")
