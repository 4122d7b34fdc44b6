"""Files are replaced as a whole, locked, and looked into without any effect."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import sys
from pathlib import Path

import filelock
import pytest

from dkimctl.files import (
    atomic_writer,
    lock_file_of,
    locked,
    peeking,
    publish,
    try_lock,
    wait_for_lock,
    write_private,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes and links")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, text, **options):
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


def test_what_is_locked_is_locked_for_others(tmp_path):
    path = tmp_path / "logins.json"
    with locked(path):
        assert try_lock(lock_file_of(path)) is None
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(lock_file_of(path)).acquire(timeout=0)
    with filelock.FileLock(lock_file_of(path)).acquire(timeout=0):
        assert try_lock(lock_file_of(path)) is None


def test_waiting_ends_with_an_error_that_names_the_lock(tmp_path):
    path = tmp_path / "logins.lock"
    unlock = try_lock(path)
    assert unlock is not None
    with pytest.raises(TimeoutError, match=f"another process holds the lock {path}") as raised:
        wait_for_lock(path, seconds=0)
    assert raised.value.errno == errno.ETIMEDOUT
    unlock()
    wait_for_lock(path, seconds=0)()


@pytest.fixture
def database(tmp_path):
    """A database with a write-ahead log that is in use, and its connection."""
    path = tmp_path / "in use?.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE name (text)")
    connection.execute("INSERT INTO name VALUES ('one')")
    yield path, connection
    connection.close()


def names(path):
    with peeking(path) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM name")]


def test_what_is_only_in_the_log_is_read(database):
    path, writer = database
    assert names(path) == ["one"]
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO name VALUES ('two')")
    assert names(path) == ["one"], "nothing waits for the writer"
    writer.execute("COMMIT")
    assert names(path) == ["one", "two"]


def test_nothing_is_created_and_nothing_can_be_written(database, tmp_path):
    path, writer = database
    writer.execute("PRAGMA wal_checkpoint")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = elsewhere / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    files = sorted(elsewhere.iterdir())
    assert names(copy) == ["one"]
    assert sorted(elsewhere.iterdir()) == files
    with peeking(copy) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM name")
    with pytest.raises(FileNotFoundError):
        names(elsewhere / "missing.db")
    assert sorted(elsewhere.iterdir()) == files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(FileNotFoundError):
        names(tmp_path / "pipe.db")
