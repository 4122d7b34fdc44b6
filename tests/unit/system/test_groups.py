"""A group is the user's own if no other user is in it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from dkimctl.system.ownership import is_private


class User(NamedTuple):
    pw_name: str
    pw_uid: int
    pw_gid: int


class Group(NamedTuple):
    gr_name: str
    gr_gid: int
    gr_mem: list[str]


ROOT, ME, YOU = User("root", 0, 0), User("me", 1000, 1000), User("you", 1001, 1001)


@pytest.mark.parametrize(
    ("group", "users", "expected"),
    [
        pytest.param(Group("me", 1000, []), [ROOT, ME, YOU], True, id="Debian's"),
        pytest.param(Group("me", 1000, ["me"]), [ROOT, ME, YOU], True, id="the user listed too"),
        pytest.param(Group("me", 1000, ["you"]), [ROOT, ME, YOU], False, id="a member"),
        pytest.param(Group("me", 1000, ["me", "you"]), [ROOT, ME, YOU], False, id="two members"),
        pytest.param(
            Group("me", 1000, []), [ROOT, ME, YOU._replace(pw_gid=1000)], False, id="primary of two"
        ),
        pytest.param(
            Group("users", 100, []), [ROOT, ME._replace(pw_gid=100)], False, id="a shared group"
        ),
        pytest.param(Group("you", 1001, []), [ROOT, ME, YOU], False, id="of another user"),
        pytest.param(Group("root", 0, []), [ROOT, ME, YOU], True, id="root's"),
        pytest.param(Group("root", 0, ["you"]), [ROOT, ME, YOU], False, id="root's with a member"),
        pytest.param(Group("me", 1000, []), [ROOT, YOU], False, id="without users"),
        pytest.param(
            Group("me", 1000, []), [User("me", 1002, 1000), ME], False, id="one name of two users"
        ),
    ],
)
def test_is_private(group, users, expected):
    assert is_private(group, users, own_uid=1000) is expected
