"""Files: read within limits, replaced as a whole, locked against other processes."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import platformdirs

if sys.platform != "win32":
    import fcntl
    import grp
    import pwd
if TYPE_CHECKING:
    import sqlite3

_HELD = (errno.EAGAIN, errno.EACCES)  # by another process; file systems differ
_OWN_STATE_DIR = "name a directory of your own in DKIMCTL_STATE_DIR"
_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # may write
_APP = "dkimctl"


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
    temporary = temporary_name(path)
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
            finished[path] = new = temporary_name(path)
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


def temporary_name(path: Path) -> Path:
    """A name next to `path` that no file has; see `delete_leftovers`."""
    return path.with_name(f".{path.name}-{os.urandom(4).hex()}")


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
    # filelock locks it the same way, but takes 20 ms to import.
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


class Fault(NamedTuple):
    """What makes a path unsafe, and how the user can change that; no hint if the user cannot."""

    message: str
    hint: str = ""


def refuse(
    fault: Fault | None, error: Callable[..., Exception], *, hint: str = _OWN_STATE_DIR
) -> None:
    """Raise `error` for a fault, if there is one. `hint` is for one that has none."""
    if fault:
        raise error(fault.message, hint=fault.hint or hint)


def fault_of(*files: Path, private: bool = False, in_own_group: bool = False) -> Fault | None:
    """The first fault of `files`, all in one directory, or of that directory; None if all is safe.

    What is missing has no fault. `private` files may not be readable by other users either.
    `in_own_group` is that of `directory_fault`. Raises OSError.
    """
    if fault := directory_fault(files[0].parent, in_own_group=in_own_group):
        return fault
    return next(filter(None, (file_fault(file, private=private) for file in files)), None)


def directory_fault(directory: Path, *, in_own_group: bool = False) -> Fault | None:
    """The fault of a directory that holds the user's files. Raises OSError.

    With `in_own_group`, a group without other members may write to it, as to directories above.
    """
    if sys.platform == "win32":
        return None
    if fault := path_fault(directory):
        return fault
    try:
        status = directory.stat()
    except FileNotFoundError:
        if not directory.is_symlink():
            return None
        message = f"the directory {directory} is a symbolic link to a missing one"
        return Fault(message, "create the directory that it names, or delete the link")
    is_open = _others_can_write(status) if in_own_group else status.st_mode & _GROUP_OR_OTHERS
    return _writable(str(directory.absolute()), status) if is_open else None


def path_fault(path: Path) -> Fault | None:
    """The fault of a directory or link on the way to `path`, or of its end. Raises OSError."""
    if sys.platform == "win32":
        return None
    absolute = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - as written, with its `..`
    faults = (_component_fault(place, status) for place, status in _components(absolute))
    if fault := next(filter(None, faults), None):
        return fault
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        if not _is_own(status.st_uid):  # that of what is at the end must be certain
            return Fault(f"unsafe {_kind(status)} {path.absolute()}: it belongs to another user")
    return None


def file_fault(path: Path, *, private: bool = False) -> Fault | None:
    """The fault of a file, but not of its directory; None for a missing file. Raises OSError."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status_fault(path, status, private=private)


def read_safe(
    path: Path, max_size: int, error: Callable[..., Exception], *, private: bool = False
) -> bytes:
    """The content of a file that no other user can change or, if it is `private`, read.

    Raises `error` for any other, OSError if it cannot be read.
    """

    def check(status: os.stat_result) -> None:
        refuse(status_fault(path, status, private=private), error)

    refuse(fault_of(path, private=private), error)
    return read_regular(path, max_size, check=check)


def status_fault(path: Path, status: os.stat_result, *, private: bool = False) -> Fault | None:
    """The fault of the file at `path`, by its status, such as that of an open descriptor."""
    if sys.platform == "win32":
        return None
    if stat.S_ISLNK(status.st_mode):
        hint = "replace it with the file itself, or delete it"
        return Fault(f"unsafe file {path}: it is a symbolic link", hint)
    if not stat.S_ISREG(status.st_mode):
        return Fault(f"unsafe file {path}: it is not a regular file", "move it elsewhere")
    if not _is_own(status.st_uid):
        return Fault(f"unsafe file {path}: it belongs to another user")
    if private and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        hint = _chmod("600", str(path), status)
        return Fault(f"unsafe file {path}: other users can read or change it", hint)
    if status.st_mode & _GROUP_OR_OTHERS:
        return _writable(str(path), status)
    return None


def _components(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Each directory and link on the way to the absolute `path`, then what is there.

    Ends at what is missing. Raises OSError, also for a loop of links.
    """
    place, names, links = "/", [*reversed(path.split("/"))], 0
    yield place, os.lstat(place)
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)  # noqa: PTH120
            continue
        try:
            status = os.lstat(next_place := os.path.join(place, name))  # noqa: PTH118
        except (FileNotFoundError, NotADirectoryError):
            return
        yield next_place, status
        if stat.S_ISLNK(status.st_mode):
            if (links := links + 1) > 40:  # as Linux follows
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(next_place)  # noqa: PTH115
            names += reversed(target.split("/"))
            place = "/" if target.startswith("/") else place
        else:
            place = next_place


def _component_fault(place: str, status: os.stat_result) -> Fault | None:
    # In a user namespace root owns the root directory, but its ID is that of all unmapped users.
    if not _is_own(status.st_uid) and status.st_uid != os.stat("/").st_uid:  # noqa: PTH116
        return Fault(f"unsafe {_kind(status)} {place}: it belongs to another user")
    # In a directory with the sticky bit, others can rename only what is theirs.
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(status.st_mode) or is_sticky or not _others_can_write(status):
        return None
    return _writable(place, status)


def _others_can_write(status: os.stat_result) -> bool:
    """Whether other users can, also as members of its group."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not is_own_group(status.st_gid)


def _is_own(uid: int) -> bool:
    return uid in (0, os.geteuid())


def _writable(place: str, status: os.stat_result) -> Fault:
    message = f"unsafe {_kind(status)} {place}: other users can write to it"
    is_shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX  # such as /tmp
    return Fault(message, "" if is_shared else _chmod("go-w", place, status))


def _kind(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "symbolic link"
    return "directory" if stat.S_ISDIR(status.st_mode) else "file"


def _chmod(mode: str, place: str, status: os.stat_result) -> str:
    """The command that changes the mode, or "" if the user may not run it."""
    if os.geteuid() not in (0, status.st_uid):
        return ""
    return f"run `chmod {mode} {shlex.quote(place)}`"


@cache
def is_own_group(gid: int) -> bool:
    """Whether the group has no members but the user or root.

    Debian and Ubuntu create one for each user, with the umask 002, so that directories in a home
    are writable by it.
    """
    own_uid = os.geteuid()
    try:
        # A directory service may not list its users.
        users = [*pwd.getpwall(), pwd.getpwuid(own_uid)]
        return is_private(grp.getgrgid(gid), users, own_uid=own_uid)
    except KeyError:  # a user or group without an entry
        return False


def is_private(group: Any, users: Iterable[Any], *, own_uid: int) -> bool:
    """Whether `group` is that of the user or root, who has its name, and has no other members.

    A shared group, such as `staff`, has another name: it may have members that a directory service
    does not list.
    """
    members = [user for user in users if user.pw_gid == group.gr_gid]
    names = {user.pw_name for user in members}
    return (
        all(user.pw_uid in (0, own_uid) for user in members)
        and group.gr_name in names
        and names.issuperset(group.gr_mem)
    )


def config_path(flag: str | None, environ: Mapping[str, str]) -> Path:
    """`flag`, else DKIMCTL_CONFIG, else config.yaml in the user's config directory."""
    if given := flag or environ.get("DKIMCTL_CONFIG"):
        return Path(given)
    return platformdirs.user_config_path(_APP, appauthor=False) / "config.yaml"


def state_dir(environ: Mapping[str, str]) -> Path:
    """DKIMCTL_STATE_DIR, else the user's state directory. It may not exist."""
    if given := environ.get("DKIMCTL_STATE_DIR"):
        return Path(given)
    return platformdirs.user_state_path(_APP, appauthor=False)


def data_dir() -> Path:
    """The user's data directory, for the embedded service. It may not exist."""
    return platformdirs.user_data_path(_APP, appauthor=False)


def prepare_directory(directory: Path) -> None:
    """Create a missing directory, unless the place is unsafe: `directory_fault` then says why.

    It and its parents get mode 0700, whatever the umask. Check it afterwards: another user may have
    created it first. Raises OSError.
    """
    if directory.is_dir() or directory_fault(directory):
        return
    ways = itertools.chain((directory,), directory.parents)
    missing = list(itertools.takewhile(lambda path: not path.is_dir(), ways))
    for path in reversed(missing):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            path.chmod(0o700)  # the umask may have removed more
