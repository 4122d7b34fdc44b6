"""The file with the profile that `profile use` chose."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.profile import read_used_profile, write_used_profile


@pytest.fixture
def state(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.parametrize("data", [b"", b"a b\n", b"\xff", b"a" * 5000])
def test_a_damaged_file_is_refused(state, data):
    write_used_profile(state, "agency")
    (state / "profile").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_used_profile(state)
    assert caught.value.hint
    assert str(state / "profile") in caught.value.message
