"""The file with the profile that `profile use` chose."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.logins import read_used_profile, write_used_profile


@pytest.fixture
def state(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def test_it_is_read_as_it_was_written(state):
    assert read_used_profile(state / "absent") is None
    assert read_used_profile(state) is None
    write_used_profile(state, "agency")
    assert read_used_profile(state) == "agency"
    write_used_profile(state, None)
    assert read_used_profile(state) is None
    write_used_profile(state, None)


@pytest.mark.parametrize("data", [b"", b"a b\n", b"\xff", b"a" * 5000])
def test_a_damaged_file_is_refused(state, data):
    write_used_profile(state, "agency")
    (state / "profile").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_used_profile(state)
    assert caught.value.hint
    assert str(state / "profile") in caught.value.message


def test_what_a_kill_left_is_deleted(state):
    leftover = state / ".profile-0123abcd"
    leftover.touch()
    write_used_profile(state, "agency")
    assert not leftover.exists()
