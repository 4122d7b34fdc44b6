"""Files: read within limits, replaced as a whole, locked, and used only where others cannot write.

Functions raise OSError for what the system refuses.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import re
import shlex
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import platformdirs

if sys.platform != "win32":
    import fcntl
    import grp
    import pwd
_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # may write
_APP = "dkimctl"


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
    """Create a missing directory and its parents with mode 0700, unless the place is unsafe.

    Check it afterwards with `directory_fault`: another user may have created it first.
    """
    if directory.is_dir() or directory_fault(directory):
        return
    for path in (*reversed(directory.parents), directory):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
            path.chmod(0o700)  # the umask may have removed more


def open_without_following(path: str, flags: int) -> int:
    """An opener for `open`: follows no symbolic link, waits at no FIFO, creates with mode 0600."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    if flags & os.O_CREAT and sys.platform != "win32":
        os.fchmod(descriptor, 0o600)  # the umask may have removed more
    return descriptor


def read_regular(path: Path, max_size: int, *, check: Callable[[os.stat_result], None]) -> bytes:
    """The content of a regular file, not a link; `check` gets the status of what is read."""
    with open(path, "rb", opener=open_without_following) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        check(status)
        data = file.read(max_size + 1)
    if len(data) > max_size:
        raise OSError(errno.EFBIG, "file too large")
    return data


def read_safe(
    path: Path, max_size: int, error: Callable[..., Exception], *, private: bool = False
) -> bytes:
    """The content of a file that no other user can change or, if it is `private`, read."""
    refuse(fault_of(path, private=private), error)

    def check(status: os.stat_result) -> None:
        refuse(status_fault(path, status, private=private), error)

    return read_regular(path, max_size, check=check)


def write_private(path: Path, text: str) -> None:
    """Atomically write a file that only its owner can read."""
    with atomic_writer(path, mode=0o600) as file:
        file.write(text)


@contextlib.contextmanager
def atomic_writer(path: Path, *, mode: int | None = None) -> Iterator[TextIO]:
    """A text file to write, which replaces the one at `path` at the end, or not at all on error.

    Its permissions are `mode`, else those of the old file, else set by the umask. Anything but a
    regular file, such as /dev/stdout, is written directly.
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


def _open_at_once(path: str, flags: int) -> int:
    """An opener for `open` that raises OSError for a FIFO that nothing reads, and does not wait."""
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nothing reads from it") from None
        raise
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return descriptor


def create_files(texts: Mapping[Path, str], *, private: Collection[Path] = ()) -> None:
    """Write new files: all, each as a whole, or none. Raises FileExistsError, also for a link."""
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as published:
        finished = {}
        for path, text in texts.items():
            finished[path] = new = temporary_name(path)
            undo.callback(new.unlink, missing_ok=True)
            with atomic_writer(new, mode=0o600 if path in private else None) as file:
                file.write(text)
        for path, new in finished.items():
            publish(new, path)
            published.callback(path.unlink, missing_ok=True)
        published.pop_all()


def publish(new: Path, path: Path) -> None:
    """Give a finished file this name, too. Raises FileExistsError if it is taken."""
    try:
        os.link(new, path)  # to rename it would replace the other one
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        new.rename(path)
    sync_directory(path.parent)


def temporary_name(path: Path) -> Path:
    """A name next to `path` that no file has; see `delete_leftovers`."""
    return path.with_name(f".{path.name}-{os.urandom(4).hex()}")


def new_name(name: str) -> str:
    """`name`, or one with a number if there is such a file: for a command to copy."""
    path = Path(name)
    numbered = (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if not os.path.lexists(each))


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


def lock_file_of(path: Path) -> Path:
    """The file that `locked` locks for the one at `path`."""
    return path.with_suffix(".lock")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file at `path` from reading to replacing it. Raises TimeoutError after 5 s."""
    unlock = wait_for_lock(lock_file_of(path), seconds=5)
    try:
        yield
    finally:
        unlock()


def wait_for_lock(path: Path, *, seconds: float = math.inf) -> Callable[[], None]:
    """Lock as `try_lock` does, as soon as possible. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while (unlock := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"another process holds the lock {path}")
        time.sleep(0.05)
    return unlock


def try_lock(path: Path) -> Callable[[], None] | None:
    """Lock the file at `path`, created if it is missing; None if another process has locked it.

    The returned function unlocks it; so does the end of the process.
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
        if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.EACCES):
            return None  # file systems differ
        raise
    return lambda: os.close(descriptor)


def file_identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from another one that has taken its name since; None if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before every commit, and twice as fast
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def sqlite_uri(uri: str) -> str:
    """A file URI as SQLite reads it: without a host, so a Windows share is part of the path."""
    return uri if uri.startswith("file:///") else uri.replace("file:", "file://", 1)


@contextlib.contextmanager
def peeking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that creates no file and never waits. Raises also sqlite3.Error."""
    if not path.is_file():  # reading a named pipe would wait
        raise FileNotFoundError(path)
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    # `immutable` ignores the log; without it, SQLite would create a missing index.
    has_log = index.exists() and log.exists() and log.stat().st_size > 0
    uri = f"{sqlite_uri(path.absolute().as_uri())}?mode=ro{'' if has_log else '&immutable=1'}"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    with contextlib.closing(connection):
        yield connection


class Fault(NamedTuple):
    """What makes a path unsafe, and how the user can change that; no hint if the user cannot."""

    message: str
    hint: str = ""
    owner: str = ""  # of what is there, if it is another user


def refuse(fault: Fault | None, error: Callable[..., Exception], *, hint: str = "") -> None:
    """Raise `error` for a fault, if there is one.

    `hint` is for one that has none; without it, the path is that of our state.
    """
    if fault:
        of_state = "name a directory of your own in DKIMCTL_STATE_DIR"
        hint = hint or (run_as(fault.owner) if fault.owner else of_state)
        raise error(fault.message, hint=fault.hint or hint)


def run_as(owner: str) -> str:
    """What to do with the state of another user."""
    return f"run it as that user: `sudo -u {shlex.quote(owner)} dkimctl …`"


def access_hint(path: Path, otherwise: str) -> str:
    """What to do where the system allows no access to `path`: `otherwise`, if it is the user's."""
    if sys.platform == "win32":
        return otherwise
    own = os.geteuid()
    for place in (path, *path.absolute().parents):
        try:
            uid = place.lstat().st_uid
        except PermissionError:  # it is in a directory that is closed
            continue
        except OSError:
            if place == path:  # a new file
                continue
            break
        if uid == own:
            break
        if place.parent.stat().st_uid == own:  # such as after a run by sudo
            whole = place if place.is_dir() else place.parent.absolute()
            us = _name_of(own).removeprefix("#")  # as chown takes a number
            what = f"-R {us} {shlex.quote(str(whole))}"
            if str(whole) == os.path.expanduser("~"):  # noqa: PTH111 - it need not be known
                what = f"{us} {shlex.quote(str(place))}*"  # with its side files
            take_over = f"`sudo chown {what}`"
            return f"{place} belongs to {_name_of(uid)}: to take it over, run {take_over}"
        return f"{place} belongs to {_name_of(uid)}: {run_as(_name_of(uid))}"
    return otherwise


def fault_of(*files: Path, private: bool = False, in_own_group: bool = False) -> Fault | None:
    """The first fault of `files`, all in one directory, or of that directory.

    What is missing has no fault. Other users may not read `private` files either.
    """
    if fault := directory_fault(files[0].parent, in_own_group=in_own_group):
        return fault
    return next(filter(None, (file_fault(file, private=private) for file in files)), None)


def directory_fault(directory: Path, *, in_own_group: bool = False) -> Fault | None:
    """The fault of a directory that holds the user's files, or of one on the way to it.

    With `in_own_group`, a group without other members may write to it, as to directories above.
    """
    fault = path_fault(directory)
    if fault or sys.platform == "win32" or not directory.exists():
        return fault
    status = directory.stat()
    is_open = _others_can_write(status) if in_own_group else status.st_mode & _GROUP_OR_OTHERS
    return _writable(directory.absolute(), status) if is_open else None


def path_fault(path: Path) -> Fault | None:
    """The fault of a directory or link on the way to `path`, or of its end."""
    if sys.platform == "win32":
        return None
    is_there = True
    try:
        end = path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:  # links in a circle
            raise
        end, is_there = None, isinstance(error, PermissionError)
    # In a user namespace root owns the root directory, but its ID is that of all unmapped users.
    trusted = (0, os.geteuid(), os.stat("/").st_uid)  # noqa: PTH116
    for place, status in _components(path):
        if status.st_uid not in trusted:
            return _of_another(place, status, is_there=is_there)
        # In a directory with the sticky bit, others can rename only what is theirs.
        is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if not (stat.S_ISLNK(status.st_mode) or is_sticky) and _others_can_write(status):
            return _writable(place, status)
    if end is None:
        message = f"the directory {path} is a symbolic link to a missing one"
        hint = "create the directory that it names, or delete the link"
        return Fault(message, hint) if path.is_symlink() else None
    if end.st_uid not in trusted[:2]:  # here it must be certain
        return _of_another(path.absolute(), end)
    return None


def file_fault(path: Path, *, private: bool = False) -> Fault | None:
    """The fault of a file, but not of its directory; None for a missing file."""
    try:
        return status_fault(path, path.lstat(), private=private)
    except (FileNotFoundError, NotADirectoryError):
        return None


def status_fault(path: Path, status: os.stat_result, *, private: bool = False) -> Fault | None:
    """The fault of the file at `path`, by its status, such as that of an open descriptor."""
    if sys.platform == "win32":
        return None
    if stat.S_ISLNK(status.st_mode):
        hint = "replace it with the file itself, or delete it"
        return Fault(f"unsafe file {path}: it is a symbolic link", hint)
    if not stat.S_ISREG(status.st_mode):
        return Fault(f"unsafe file {path}: it is not a regular file", "move it elsewhere")
    if status.st_uid not in (0, os.geteuid()):
        return _of_another(path, status)
    if private and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        hint = _chmod("600", path, status)
        return Fault(f"unsafe file {path}: other users can read or change it", hint)
    return _writable(path, status) if status.st_mode & _GROUP_OR_OTHERS else None


def _components(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each directory and link on the way to `path`, as written, up to what is missing."""
    place = Path("/")
    yield place, place.lstat()
    names = [*reversed(os.path.join(os.getcwd(), path).split("/"))]  # noqa: PTH109, PTH118
    while names:
        name = names.pop()
        if name == "..":
            place = place.parent
            continue
        if name in ("", "."):
            continue
        try:
            status = (next_place := place / name).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return
        yield next_place, status
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(next_place)  # noqa: PTH115
            names += reversed(target.split("/"))
            place = Path("/") if target.startswith("/") else place
        else:
            place = next_place


def _others_can_write(status: os.stat_result) -> bool:
    """Whether other users can, also as members of its group."""
    by_group = status.st_mode & stat.S_IWGRP and not is_own_group(status.st_gid)
    return bool(status.st_mode & stat.S_IWOTH or by_group)


def _of_another(place: Path, status: os.stat_result, *, is_there: bool = True) -> Fault:
    """`is_there`: what is at the end of the way, too, so it is that user's."""
    owner = _name_of(status.st_uid)
    message = f"unsafe {_kind(status)} {place}: it belongs to another user, {owner}"
    return Fault(message, owner=owner if is_there else "")


def _name_of(uid: int) -> str:
    """The user's name, or else the number as `sudo` takes it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _writable(place: Path, status: os.stat_result) -> Fault:
    is_shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX  # such as /tmp
    hint = "" if is_shared else _chmod("go-w", place, status)
    return Fault(f"unsafe {_kind(status)} {place}: other users can write to it", hint)


def _kind(status: os.stat_result) -> str:
    kinds = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "directory"}
    return kinds.get(stat.S_IFMT(status.st_mode), "file")


def _chmod(mode: str, place: Path, status: os.stat_result) -> str:
    """The command that changes the mode, or "" if the user may not run it."""
    may_run = os.geteuid() in (0, status.st_uid)
    return f"run `chmod {mode} {shlex.quote(str(place))}`" if may_run else ""


@cache
def is_own_group(gid: int) -> bool:
    """Whether the group has no members but the user or root.

    Debian and Ubuntu create one for each user, which can write to what they make (umask 002).
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

    A shared one, such as `staff`, may have members that a directory service does not list.
    """
    members = [user for user in users if user.pw_gid == group.gr_gid]
    names = {user.pw_name for user in members}
    return (
        all(user.pw_uid in (0, own_uid) for user in members)
        and group.gr_name in names
        and names.issuperset(group.gr_mem)
    )
