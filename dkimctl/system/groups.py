"""Groups without other members, as Debian and Ubuntu create one for each user.

With them goes the umask 002, so directories in a home are writable by this group.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Protocol


class User(Protocol):
    """An entry of the user database, as in `pwd`."""

    @property
    def pw_name(self) -> str: ...
    @property
    def pw_uid(self) -> int: ...
    @property
    def pw_gid(self) -> int: ...


class Group(Protocol):
    """An entry of the group database, as in `grp`."""

    @property
    def gr_name(self) -> str: ...
    @property
    def gr_gid(self) -> int: ...
    @property
    def gr_mem(self) -> list[str]: ...


@cache
def is_own_group(gid: int) -> bool:
    """Whether the group has no members but the user or root."""
    import grp
    import pwd

    own_uid = os.geteuid()
    try:
        # A directory service may not list its users.
        users = [*pwd.getpwall(), pwd.getpwuid(own_uid)]
        return is_private(grp.getgrgid(gid), users, own_uid=own_uid)
    except KeyError:  # a user or group without an entry
        return False


def is_private(group: Group, users: Iterable[User], *, own_uid: int) -> bool:
    """Whether `group` is that of the user or of root, who has its name, and has no other members.

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
