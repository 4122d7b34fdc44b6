"""A group is the user's own if no other user is in it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from dkimctl.files import is_private


class User(NamedTuple):
    pw_name: str
    pw_uid: int
    pw_gid: int


class Group(NamedTuple):
    gr_name: str
    gr_gid: int
    gr_mem: list[str]


ROOT, ME, YOU = User("root", 0, 0), User("me", 1000, 1000), User("you", 1001, 1001)
EVERYBODY = [ROOT, ME, YOU]


@pytest.mark.parametrize(
    ("group", "users", "expected"),
    [
        (Group("me", 1000, []), EVERYBODY, True),  # as on Debian
        (Group("me", 1000, ["me"]), EVERYBODY, True),
        (Group("me", 1000, ["me", "you"]), EVERYBODY, False),
        (Group("me", 1000, []), [ROOT, ME, YOU._replace(pw_gid=1000)], False),
        (Group("users", 100, []), [ROOT, ME._replace(pw_gid=100)], False),
        (Group("you", 1001, []), EVERYBODY, False),
        (Group("root", 0, []), EVERYBODY, True),
        (Group("root", 0, ["you"]), EVERYBODY, False),
        (Group("me", 1000, []), [ROOT, YOU], False),
        (Group("me", 1000, []), [User("me", 1002, 1000), ME], False),
    ],
)
def test_is_private(group, users, expected):
    assert is_private(group, users, own_uid=1000) is expected
