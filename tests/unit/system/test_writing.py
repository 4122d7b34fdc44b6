"""Files are replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import pytest

from dkimctl.system.files import atomic_writer, publish, write_private

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes and links")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path, text: str, **options) -> None:
    with atomic_writer(path, **options) as file:
        file.write(text)


def test_a_file_is_replaced_at_the_end_and_no_temporary_file_remains(tmp_path):
    path = tmp_path / "dkim.zone"
    path.write_text("old")
    with atomic_writer(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_file_unchanged(tmp_path):
    path = tmp_path / "dkim.zone"
    path.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), atomic_writer(path) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@POSIX
def test_a_private_file_does_not_inherit_permissions(tmp_path):
    path = tmp_path / "credentials.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)


@POSIX
def test_permissions_are_kept_and_those_of_a_new_file_follow_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write(old, "x")
        write(new, "x")
    finally:
        os.umask(before)
    assert (mode_of(old), mode_of(new)) == (0o640, 0o640)


@POSIX
def test_a_link_remains_a_link_and_a_device_is_written_directly(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link, "x")
    assert link.is_symlink()
    assert target.read_text() == "x"
    write(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()


@POSIX
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_finished_file_takes_no_name_that_something_has(tmp_path, kind):
    new, path = tmp_path / "new", tmp_path / "path"
    new.write_text("new")
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nothing")
    with pytest.raises(FileExistsError):
        publish(new, path)
    assert not (tmp_path / "nothing").exists()
    assert kind != "file" or path.read_text() == "mine"
    path.unlink()
    publish(new, path)
    assert path.read_text() == "new"
