"""Who may own and change the files that decide what is sent where, and what goes into DNS.

Only the user and root may. The rule has three parts:

- A file belongs to the user or root, is regular and no symbolic link, and only its owner can write
  to it.
- Its directory belongs to the user or root, and only its owner can write to it. That of a file that
  the user names may be writable by a group without other members.
- In the directories above, also those to which a symbolic link leads, only the user and root can
  rename what leads to the file. Other users may write to such a directory if it has the sticky bit.
  A group may, if it has no other members. A link belongs to the user or root.

So no other user can replace what was checked before it is used. On Windows nothing is refused:
access lists protect a user's files there, and owner and mode say nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dkimctl.system.files import read_regular

_OWN_STATE_DIR = "name a directory of your own in DKIMCTL_STATE_DIR"
_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # may write


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
    faults = (file_fault(file, private=private) for file in files)
    return directory_fault(files[0].parent, in_own_group=in_own_group) or next(
        filter(None, faults), None
    )


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
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if _is_own(status.st_uid):  # that of what is at the end must be certain
        return None
    return Fault(f"unsafe {_kind(status)} {path.absolute()}: it belongs to another user")


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
    if not _is_trusted(status.st_uid):
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
    if not status.st_mode & stat.S_IWGRP:
        return False
    return not is_own_group(status.st_gid)


def _is_trusted(uid: int) -> bool:
    # In a user namespace root owns the root directory, but its ID is that of all unmapped users.
    return _is_own(uid) or uid == os.stat("/").st_uid  # noqa: PTH116


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
    import shlex

    return f"run `chmod {mode} {shlex.quote(place)}`"


@cache
def is_own_group(gid: int) -> bool:
    """Whether the group has no members but the user or root.

    Debian and Ubuntu create one for each user, with the umask 002, so that directories in a home
    are writable by it.
    """
    import grp
    import pwd

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
