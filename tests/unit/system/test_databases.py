"""Looking into SQLite files without any effect on them."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from dkimctl.system.files import peeking


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
