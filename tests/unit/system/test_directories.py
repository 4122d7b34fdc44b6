"""The directories of the user's files."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from dkimctl.files import config_path, data_dir, prepare_directory, state_dir

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix_only
@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_a_directory_is_created_with_its_parents_for_the_user_alone(tmp_path, umask):
    directory = tmp_path / "a" / "b" / "state"
    before = os.umask(umask)
    try:
        prepare_directory(directory)
    finally:
        os.umask(before)
    assert [mode_of(path) for path in (directory, *directory.parents[:2])] == [0o700] * 3


@posix_only
def test_nothing_is_created_in_an_unsafe_place(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o777)
    prepare_directory(place / "state")
    assert list(place.iterdir()) == []


@posix_only
def test_nothing_is_created_where_a_link_leads_to(tmp_path):
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    prepare_directory(tmp_path / "state")
    assert not (tmp_path / "elsewhere").exists()


def test_flag_then_environment_then_platform_directory():
    environ = {"DKIMCTL_CONFIG": "there.yaml", "DKIMCTL_STATE_DIR": "state"}
    assert config_path("here.yaml", environ) == Path("here.yaml")
    assert config_path(None, environ) == Path("there.yaml")
    assert config_path(None, {}).parts[-2:] == ("dkimctl", "config.yaml")
    assert state_dir(environ) == Path("state")
    assert state_dir({}).is_absolute()
    assert "dkimctl" in state_dir({"DKIMCTL_STATE_DIR": ""}).parts
    assert "dkimctl" in data_dir().parts
