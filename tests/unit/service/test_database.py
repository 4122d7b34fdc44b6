from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from dkimctl.errors import UsageError
from dkimctl.service.clients import create_client, list_clients
from dkimctl.service.database import StoreUnavailable, open_store


def _refusal(path):
    with pytest.raises(UsageError) as caught:
        open_store(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_missing_file_is_created_with_its_directory(tmp_path):
    path = tmp_path / "new" / "deeper" / "service.db"
    open_store(path).close()
    assert path.is_file()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_only_the_owner_can_read_the_files(tmp_path):
    path = tmp_path / "new" / "service.db"
    store = open_store(path)
    create_client(store)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    store.close()
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_data_file_uses_wal_foreign_keys_and_a_busy_timeout(sqlite_store):
    with sqlite_store.reading() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 10_000}


def test_a_file_that_is_not_a_database_is_refused_and_not_changed(tmp_path):
    path = tmp_path / "domains.yaml"
    path.write_text("- example.com\n" * 100, encoding="utf-8")
    assert "not a database" in _refusal(path).message
    assert path.read_text(encoding="utf-8") == "- example.com\n" * 100


def test_a_database_of_another_program_is_refused_and_not_changed(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    before = path.read_bytes()
    assert "of another program" in _refusal(path).message
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    ["CREATE VIEW other AS SELECT 1", "PRAGMA application_id = 1", "PRAGMA user_version = 1"],
)
def test_a_database_without_tables_can_belong_to_another_program(tmp_path, statement):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    before = path.read_bytes()
    assert "of another program" in _refusal(path).message
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "service.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "newer" in _refusal(path).message


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_other_users_can_access_is_refused(tmp_path, mode):
    path = tmp_path / "it's.db"
    open_store(path).close()
    path.chmod(mode)
    refusal = _refusal(path)
    assert "other users" in refusal.message
    subprocess.run(refusal.hint.split("`")[1], shell=True, check=True)
    open_store(path).close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_file_that_cannot_be_written_is_refused(tmp_path, needs_tool):
    path = tmp_path / "service.db"
    open_store(path).close()
    path.chmod(0o400)
    script = (
        "import pathlib, sys; from dkimctl.service.database import open_store;"
        " open_store(pathlib.Path(sys.argv[1]))"
    )
    words = [sys.executable, "-c", script, str(path)]
    if os.geteuid() == 0:  # file modes do not apply to root
        words = [needs_tool("setpriv"), "--bounding-set=-dac_override,-dac_read_search", *words]
    done = subprocess.run(words, capture_output=True, text=True)
    assert f"UsageError: {path}: the service data file is not writable" in done.stderr


def test_a_later_failure_is_reported_without_parameters(store):
    with pytest.raises(UsageError) as caught, store.writing() as connection:
        connection.execute(text("INSERT INTO absent VALUES (:secret)"), {"secret": "hush"})
    assert store.name in caught.value.message
    assert "hush" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_failed_transaction_is_rolled_back(store):
    insert = text("INSERT INTO clients VALUES ('lost', '', 'active', '', NULL, NULL)")

    def insert_and_fail():
        with store.writing() as connection:
            connection.execute(insert)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        insert_and_fail()
    assert list_clients(store) == []


def _replace_by_a_copy(path):
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody delete files in use")
@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        _replace_by_a_copy,
        lambda path: path.with_name(f"{path.name}-wal").unlink(),
        lambda path: path.with_name(f"{path.name}-shm").unlink(),
    ],
)
def test_a_file_that_is_no_longer_in_place_is_noticed_at_once(tmp_path, spoil):
    """By what reads and by what writes, since both would be wrong."""
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        create_client(store, "before")
        spoil(path)
        for operation in (create_client, list_clients):
            with pytest.raises(UsageError, match="was moved or replaced") as caught:
                operation(store)
            assert str(path) in caught.value.message
            assert caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of open files")
def test_a_connection_that_cannot_be_opened_is_a_message(sqlite_store):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with sqlite_store.reading():  # the pool has no other connection
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(StoreUnavailable, match="unable to open"):
                create_client(sqlite_store)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    create_client(sqlite_store)


def test_the_log_stays_while_other_processes_come_and_go(tmp_path):
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        for number in range(5):
            with closing(open_store(path)) as other:
                create_client(other, f"client-{number}")
            list_clients(store)
            create_client(store)
        assert len(list_clients(store)) == 10
