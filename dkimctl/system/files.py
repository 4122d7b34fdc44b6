"""Files: read within limits, replaced as a whole, locked against other processes."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    import sqlite3

_HELD = (errno.EAGAIN, errno.EACCES)  # by another process; file systems differ


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
    """An opener for `open`: follows no symbolic link, waits at no FIFO, creates with mode 0600."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    if flags & os.O_CREAT and sys.platform != "win32":
        os.fchmod(descriptor, 0o600)  # the umask may have removed more
    return descriptor


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
    """Give a finished file this name, too. Raises FileExistsError if it is taken, and OSError."""
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
    """Delete what killed processes have left of replacing `path`; the caller holds the lock."""
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
        time.sleep(0.05)
    return unlock


def try_lock(path: Path) -> Callable[[], None] | None:
    """Lock the file at `path`, created if it is missing; None if another process has locked it.

    The returned function unlocks it. The operating system does so at the end of the process.
    Raises OSError if there is no such lock here.
    """
    if sys.platform == "win32":
        import filelock

        # Its fallback is a file whose existence is the lock: a killed process would leave it.
        lock = filelock.FileLock(path, mode=0o600, fallback_to_soft=False)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return None
        return lock.release
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


class FileIdentity(NamedTuple):
    """Tells a file from another one that has taken its name since."""

    device: int
    inode: int


def file_identity(path: Path) -> FileIdentity | None:
    """None if the file is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before every commit, and twice as fast
    except FileNotFoundError:
        return None
    return FileIdentity(status.st_dev, status.st_ino)


def sqlite_uri(uri: str) -> str:
    """A file URI as SQLite reads it: without a host, so a Windows share is part of the path."""
    return uri if uri.startswith("file:///") else uri.replace("file:", "file://", 1)


@contextlib.contextmanager
def peeking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that creates no file and never waits.

    It takes no lock either, unless another process has the file open for writing. Raises
    sqlite3.Error and OSError.
    """
    import sqlite3

    if not path.is_file():  # reading a named pipe would wait
        raise FileNotFoundError(path)
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    # `immutable` ignores the log; without it, SQLite would create a missing index.
    has_log = index.exists() and log.exists() and log.stat().st_size > 0
    parameters = "mode=ro" if has_log else "mode=ro&immutable=1"
    uri = f"{sqlite_uri(path.absolute().as_uri())}?{parameters}"
    with contextlib.closing(
        sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    ) as connection:
        yield connection
