"""Backups: what is in them, where they can be restored to, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result
from sqlalchemy import Table, insert, select, text

from dkimctl.errors import OutputError, UsageError
from dkimctl.service.audit import read_events
from dkimctl.service.backup import back_up, opened_backup, restore
from dkimctl.service.clients import authenticate, create_client, list_clients, rotate_secret
from dkimctl.service.database.opening import open_store
from dkimctl.service.database.schema import metadata, passphrases, registrations
from dkimctl.service.database.sqlite import SqliteStore
from dkimctl.service.database.store import Store
from dkimctl.service.deliveries import add_delivery
from dkimctl.service.keys import pool
from dkimctl.service.keys.encryption import PrivateKeyEncryptor
from dkimctl.service.keys.pairs import KeyPair, make_key
from dkimctl.service.registrations import Registration, add_all
from postgresql import PostgresServer
from small_disk import SmallDisk

SHORT_LIVED = {"tokens", "failed_logins", "key_pool"}


def _ignore(_done: int, _total: int) -> None:
    pass


def _rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that a backup has, without their numbers."""

    def rows(table: Table) -> list[tuple[Any, ...]]:
        columns = [column for column in table.columns if column.name != "audit_id"]
        with store.reading() as connection:
            query = select(*columns).order_by(*table.primary_key)
            return [tuple(row) for row in connection.execute(query)]

    return {name: rows(table) for name, table in metadata.tables.items() if name not in SHORT_LIVED}


def _registration(number: int, client_id: str = "me") -> Registration:
    return Registration(
        client_id=client_id,
        sign_domain=f"{number:05}.example.com",
        selector="s1",
        key_len=2048,
        start_date="2026-01-01T00:00+00:00",
        default=number % 2,
        enable=number % 3 > 0,
        value="v=DKIM1; k=rsa; p=",
        regist_date="2026-01-01T00:00:00+00:00",
    )


def _fill(store: Store, count: int = 5) -> None:
    """Something in every table."""
    create_client(store, "me")
    rotate_secret(store, "me", 60)
    create_client(store, "other")
    add_delivery(store, "me", "delivery-1")
    add_all(store, {_registration(number): b"key %d" % number for number in range(count)})
    pool.put(store, [(2048, KeyPair("value", b"key"))])


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Another store, of each kind, to restore to."""
    if request.param == "sqlite":
        store = open_store(tmp_path / "restored.db")
    else:
        server: PostgresServer = request.getfixturevalue("postgresql")
        server.execute("DROP DATABASE IF EXISTS restored WITH (FORCE)")
        store = open_store(server.create_database("restored"))
    yield store
    store.close()


def _restore(path: Path, store: Store) -> None:
    with opened_backup(path) as backup:
        restore(backup, store, _ignore)


def _refusal(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught, opened_backup(path):
        pass
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.fixture
def backup(sqlite_store: SqliteStore, tmp_path: Path) -> Path:
    _fill(sqlite_store)
    back_up(sqlite_store, tmp_path / "backup.db", _ignore)
    return tmp_path / "backup.db"


def test_a_backup_of_either_kind_is_restored_to_either_kind(
    store: Store, empty: Store, tmp_path: Path
) -> None:
    _fill(store, 2500)
    counts = back_up(store, tmp_path / "backup.db", _ignore)
    assert (counts["clients"], counts["registrations"]) == (2, 2500)
    before = _rows(store)
    _restore(tmp_path / "backup.db", empty)
    after = _rows(empty)
    *copied, restored = after.pop("audit")
    assert copied == before.pop("audit")
    assert after == before
    assert restored[2:] == ("restore", str(tmp_path / "backup.db"))


def test_the_restored_service_goes_on(store: Store, empty: Store, tmp_path: Path) -> None:
    secret = create_client(store, "me").secret
    back_up(store, tmp_path / "backup.db", _ignore)
    _restore(tmp_path / "backup.db", empty)
    assert authenticate(empty, "me", secret)
    create_client(empty, "new")  # with a number of its own in the audit log
    assert len(add_all(empty, {_registration(1): b"key"})) == 1
    actions = [event.action for event in read_events(empty)]
    assert actions == ["client create", "backup", "restore", "client create", "register"]


def test_a_backup_has_neither_tokens_nor_keys_made_ahead(
    register: Callable[..., Result], store: Store, tmp_path: Path
) -> None:
    register({"sign_domain": "example.com"})
    pool.put(store, [(2048, KeyPair("value", b"key"))])
    back_up(store, tmp_path / "backup.db", _ignore)
    with closing(sqlite3.connect(tmp_path / "backup.db")) as connection:
        for table in SHORT_LIVED:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM registrations").fetchone() == (1,)


def test_a_backup_is_of_one_moment(store: Store, tmp_path: Path) -> None:
    """What clients do meanwhile is in it whole or not at all."""
    _fill(store, 3000)
    stop, count = threading.Event(), 0

    def go_on() -> None:
        nonlocal count
        while not stop.is_set():
            client_id = create_client(store).client_id
            add_all(store, {_registration(10_000 + count, client_id): b"key"})
            count += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for number in range(3):
            done = count
            back_up(store, tmp_path / f"{number}.db", _ignore)
            with closing(sqlite3.connect(tmp_path / f"{number}.db")) as connection:
                clients = connection.execute("SELECT count(*) FROM clients").fetchone()[0] - 2
                rows = connection.execute("SELECT count(*) FROM registrations").fetchone()[0] - 3000
                events = "SELECT count(*) FROM audit WHERE action = 'register'"
                assert connection.execute(events).fetchone()[0] - 3000 == rows
            assert clients - rows in (0, 1)
            assert done <= rows
            assert count > done, "the service did not stand still"
    finally:
        stop.set()
        thread.join()


def test_encrypted_keys_stay_encrypted_with_their_passphrase(tmp_path: Path, empty: Store) -> None:
    encryptor = PrivateKeyEncryptor(b"hush")
    with closing(open_store(tmp_path / "service.db", encryptor)) as store:
        create_client(store, "me")
        add_all(store, {_registration(1): make_key(1024).private_key})
        counts = back_up(store, tmp_path / "backup.db", _ignore)
    assert counts["passphrases"] == 1
    assert b"BEGIN PRIVATE KEY" not in (tmp_path / "backup.db").read_bytes()
    with empty.writing() as connection:  # of a service that already runs, with another one
        connection.execute(insert(passphrases).values(marker=b"other"))
    _restore(tmp_path / "backup.db", empty)
    with empty.reading() as connection:
        marker = connection.execute(select(passphrases.c.marker)).scalar_one()
        key = connection.execute(select(registrations.c.private_key)).scalar_one()
    assert encryptor.decrypt(marker)
    assert encryptor.decrypt(key)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_only_the_owner_can_read_a_backup_from_the_beginning(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    _fill(sqlite_store)
    directory = tmp_path / "backups"
    directory.mkdir()
    modes = set()

    def look(_done: int, _total: int) -> None:
        modes.update(stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir())

    umask = os.umask(0)
    try:
        back_up(sqlite_store, directory / "backup.db", look)
    finally:
        os.umask(umask)
    look(0, 0)
    assert modes == {0o600}
    assert [file.name for file in directory.iterdir()] == ["backup.db"]


@pytest.mark.parametrize("kind", ["file", "dangling link", "directory"])
def test_a_backup_replaces_nothing(sqlite_store: SqliteStore, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "backup.db"
    if kind == "file":
        path.write_text("mine")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("nothing")
    with pytest.raises(UsageError, match="not overwritten"):
        back_up(sqlite_store, path, _ignore)
    assert kind != "file" or path.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_a_file_that_appears_meanwhile_is_not_replaced(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    path = tmp_path / "backups" / "backup.db"
    path.parent.mkdir()
    _fill(sqlite_store)

    def write(_done: int, _total: int) -> None:
        path.write_text("mine")

    with pytest.raises(UsageError, match="not overwritten"):
        back_up(sqlite_store, path, write)
    assert path.read_text() == "mine"
    assert [*path.parent.iterdir()] == [path]


def test_a_backup_in_a_missing_directory_is_an_output_error(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        back_up(sqlite_store, tmp_path / "no" / "backup.db", _ignore)


def test_a_full_disk_leaves_no_backup(sqlite_store: SqliteStore, small_disk: SmallDisk) -> None:
    _fill(sqlite_store, 5000)
    directory = small_disk.path / "backups"
    directory.mkdir(mode=0o700)
    small_disk.fill(leaving=200_000)
    with pytest.raises(OutputError, match="disk is full"):
        back_up(sqlite_store, directory / "backup.db", _ignore)
    assert not [*directory.iterdir()]


def test_damaged_data_gives_no_backup(sqlite_store: SqliteStore, tmp_path: Path) -> None:
    _fill(sqlite_store)
    with sqlite_store.writing() as connection:
        connection.execute(text("UPDATE registrations SET private_key = 'text'"))
    with pytest.raises(UsageError, match="a value in registrations is invalid") as caught:
        back_up(sqlite_store, tmp_path / "backup.db", _ignore)
    assert str(sqlite_store.path) in caught.value.message
    assert not (tmp_path / "backup.db").exists()


def test_data_that_has_clients_is_not_overwritten(backup: Path, empty: Store) -> None:
    create_client(empty, "here")
    before = _rows(empty)
    with pytest.raises(UsageError, match="has clients already") as caught:
        _restore(backup, empty)
    assert empty.name in caught.value.message
    assert _rows(empty) == before


def test_what_fails_halfway_restores_nothing(backup: Path, empty: Store) -> None:
    before = _rows(empty)

    def fail(_done: int, _total: int) -> None:
        raise ZeroDivisionError

    with opened_backup(backup) as source, pytest.raises(ZeroDivisionError):
        restore(source, empty, fail)
    assert _rows(empty) == before
    _restore(backup, empty)
    assert [client.client_id for client in list_clients(empty)] == ["me", "other"]


def test_a_backup_that_contradicts_itself_restores_nothing(backup: Path, empty: Store) -> None:
    with closing(sqlite3.connect(backup)) as connection, connection:
        connection.execute("DELETE FROM clients")
    before = _rows(empty)
    with pytest.raises(UsageError, match="contradicts itself"):
        _restore(backup, empty)
    assert _rows(empty) == before


def test_keys_made_ahead_before_the_restore_are_dropped(backup: Path, empty: Store) -> None:
    pool.put(empty, [(2048, KeyPair("value", b"of another passphrase"))])
    _restore(backup, empty)
    assert not pool.depth(empty)


def test_restoring_does_not_change_the_backup(backup: Path, empty: Store) -> None:
    backup.chmod(0o400)
    before = backup.read_bytes(), backup.stat().st_mtime_ns
    _restore(backup, empty)
    assert (backup.read_bytes(), backup.stat().st_mtime_ns) == before
    assert not [*backup.parent.glob("backup.db-*")]


def test_a_backup_of_an_earlier_version_is_upgraded(backup: Path, empty: Store) -> None:
    with closing(sqlite3.connect(backup)) as connection, connection:
        connection.executescript(
            "DROP TABLE audit; DROP TABLE key_pool; DROP TABLE failed_logins; "
            "DROP TABLE dkimctl_version; ALTER TABLE clients DROP COLUMN previous_hash; "
            "ALTER TABLE clients DROP COLUMN previous_until; PRAGMA user_version = 2;"
        )
    before = backup.read_bytes()
    _restore(backup, empty)
    assert [client.client_id for client in list_clients(empty)] == ["me", "other"]
    assert len(_rows(empty)["registrations"]) == 5
    assert backup.read_bytes() == before


def test_a_closed_data_file_can_be_restored(sqlite_store: SqliteStore, empty: Store) -> None:
    _fill(sqlite_store)
    sqlite_store.close()
    _restore(sqlite_store.path, empty)
    assert len(_rows(empty)["registrations"]) == 5


def test_a_data_file_in_use_is_no_backup(sqlite_store: SqliteStore) -> None:
    _fill(sqlite_store)
    refusal = _refusal(sqlite_store.path)
    assert "service.db-wal" in refusal.message
    assert f"dkimctl service backup --data {sqlite_store.path} FILE" in refusal.hint


def test_what_is_no_backup_is_refused(tmp_path: Path, backup: Path) -> None:
    assert "no such file" in _refusal(tmp_path / "absent.db").message
    assert "not a regular file" in _refusal(tmp_path).message
    (tmp_path / "text").write_text("- example.com\n" * 100)
    (tmp_path / "text").chmod(0o600)
    assert "not a database" in _refusal(tmp_path / "text").message
    (tmp_path / "empty").touch(0o600)
    assert "another program" in _refusal(tmp_path / "empty").message
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "newer dkimctl" in _refusal(backup).message
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA application_id = 1")
    assert "another program" in _refusal(backup).message


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_backup_that_others_can_read_or_change_is_refused(backup: Path) -> None:
    for mode in (0o640, 0o602):
        backup.chmod(mode)
        assert "other users" in _refusal(backup).message


@pytest.mark.parametrize("offset", [100, 4096 * 3, -4096])
def test_a_damaged_backup_is_refused(
    sqlite_store: SqliteStore, tmp_path: Path, offset: int
) -> None:
    _fill(sqlite_store, 500)
    path = tmp_path / "backup.db"
    back_up(sqlite_store, path, _ignore)
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.seek(offset % size)
        file.write(b"\xff" * 60)
    refusal = _refusal(path)
    assert "damaged" in refusal.message or "malformed" in refusal.message


def test_a_truncated_backup_is_refused(backup: Path) -> None:
    os.truncate(backup, backup.stat().st_size // 2)
    refusal = _refusal(backup)
    assert "damaged" in refusal.message or "malformed" in refusal.message


def test_the_progress_ends_at_the_number_of_all_rows(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    _fill(sqlite_store, 2500)
    steps = []
    back_up(sqlite_store, tmp_path / "backup.db", lambda *step: steps.append(step))
    assert steps[-1][0] == steps[-1][1] == sum(map(len, _rows(sqlite_store).values()))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
