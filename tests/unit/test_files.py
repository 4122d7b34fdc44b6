"""Files that are whole, or as they were."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import pytest

from dkimctl.files import replace_text, replacing

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="modes and links as POSIX has them")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(path: Path, text: str, **options) -> None:
    with replacing(path, **options) as file:
        file.write(text)


def test_a_file_is_replaced_at_the_end_and_nothing_lies_beside_it(tmp_path):
    path = tmp_path / "dkim.zone"
    path.write_text("old")
    with replacing(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_the_midst_leaves_it_as_it_was(tmp_path):
    path = tmp_path / "dkim.zone"
    path.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), replacing(path) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@POSIX
def test_a_secret_is_for_its_owner_whatever_was_there(tmp_path):
    path = tmp_path / "credentials.json"
    path.write_text("old")
    path.chmod(0o644)
    replace_text(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)


@POSIX
def test_who_could_use_a_file_still_can_and_a_new_one_is_as_the_umask_says(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        put(old, "x")
        put(new, "x")
    finally:
        os.umask(before)
    assert (mode_of(old), mode_of(new)) == (0o640, 0o640)


@POSIX
def test_a_link_stays_one_and_a_device_is_no_file_to_replace(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    put(link, "x")
    assert link.is_symlink()
    assert target.read_text() == "x"
    put(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()
