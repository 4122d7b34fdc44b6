"""A data file has one passphrase or none, whoever opens it and in which order."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from dkimctl.errors import UsageError
from dkimctl.service import registrations, schema
from dkimctl.service.clients import create_client
from dkimctl.service.encryption import PrivateKeyEncryptor, is_sealed
from dkimctl.service.keys import make_key
from dkimctl.service.passphrase import require_none
from dkimctl.service.registrations import Registration
from dkimctl.service.store import Store


@pytest.fixture(scope="module")
def ours() -> PrivateKeyEncryptor:
    return PrivateKeyEncryptor(b"ours")


@pytest.fixture(scope="module")
def theirs() -> PrivateKeyEncryptor:
    return PrivateKeyEncryptor(b"theirs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A data file with a registration whose key is not sealed."""
    path = tmp_path / "service.db"
    with closing(Store.open(path)) as store:
        create_client(store, "me")
        _register(store, "old.example")
    return path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A data file without a registration."""
    path = tmp_path / "empty.db"
    with closing(Store.open(path)) as store:
        create_client(store, "me")
    return path


@contextmanager
def _changed(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def _register(store: Store, domain: str) -> bytes:
    pair = make_key(1024)
    made = Registration(
        "me", domain, "s1", 1024, "2026-11-21T12:00+00:00", 0, True, pair.value,
        "2026-11-21T12:00:00+00:00",
    )  # fmt: skip
    assert registrations.add(store, made, pair.private_key)
    return pair.private_key


def _make_version_1(path: Path) -> None:
    """What dkimctl wrote before there were markers."""
    with _changed(path) as connection:
        connection.execute("DROP TABLE passphrases")
        connection.execute("PRAGMA user_version = 1")


def _plant(path: Path, domain: str, pem: bytes) -> None:
    with _changed(path) as connection:
        row = ("me", domain, "s1", 1024, "", 0, 1, "", "", pem)
        connection.execute(
            "INSERT INTO registrations (client_id, sign_domain, selector, key_len, start_date,"
            ' "default", enable, value, regist_date, private_key) VALUES (?,?,?,?,?,?,?,?,?,?)',
            row,
        )


def _unsealed(path: Path) -> int:
    with _changed(path) as connection:
        keys = connection.execute("SELECT private_key FROM registrations").fetchall()
    return sum(not is_sealed(key) for (key,) in keys)


def _refused(path: Path, sealer: PrivateKeyEncryptor | None, words: str) -> None:
    """As one who makes keys opens the file."""
    with (
        pytest.raises(UsageError, match=words) as caught,
        closing(Store.open(path, sealer)) as store,
        store.reading() as connection,
    ):
        require_none(connection, path)
    assert "DKIMCTL_SERVICE_PASSPHRASE" in caught.value.hint


def test_with_a_passphrase_old_keys_are_sealed_and_leave_no_trace(path, ours):
    with closing(Store.open(path)) as store:
        old = registrations.private_key(store, "old.example", "s1")
    with closing(Store.open(path, ours)) as store:
        new = _register(store, "new.example")
        assert registrations.private_key(store, "old.example", "s1") == old
        assert registrations.private_key(store, "new.example", "s1") == new
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for key in (old, new):
        assert key.split(b"\n")[3] not in data
    assert b"BEGIN PRIVATE KEY" not in data


def test_the_first_passphrase_is_that_of_the_file(empty, ours, theirs):
    Store.open(empty, ours).close()
    _refused(empty, theirs, "sealed with another passphrase")
    _refused(empty, None, "sealed with a passphrase")
    Store.open(empty, ours).close()


def test_a_new_file_has_its_passphrase_at_once(tmp_path, ours, theirs):
    path = tmp_path / "new.db"
    with closing(Store.open(path, ours)):
        _refused(path, theirs, "sealed with another passphrase")


def test_another_passphrase_or_none_does_not_open_keys(path, ours, theirs):
    Store.open(path, ours).close()
    _refused(path, theirs, "sealed with another passphrase")
    with (
        closing(Store.open(path)) as store,
        pytest.raises(UsageError, match="sealed with a passphrase"),
    ):
        registrations.private_key(store, "old.example", "s1")


def test_who_has_no_passphrase_adds_no_key_once_the_file_is_sealed(path, ours):
    with closing(Store.open(path)) as old:
        _register(old, "before.example")
        Store.open(path, ours).close()
        with pytest.raises(UsageError, match="since sealed"):
            _register(old, "after.example")
    assert _unsealed(path) == 0
    with closing(Store.open(path)) as store:
        assert not registrations.taken(store, [("after.example", "s1")])


def test_who_has_another_passphrase_adds_no_key(empty, ours, theirs):
    with closing(Store.open(empty, ours)) as store:
        with _changed(empty) as connection:
            connection.execute("DELETE FROM passphrases")
        Store.open(empty, theirs).close()
        with pytest.raises(UsageError, match="since sealed"):
            _register(store, "a.example")


def test_a_file_of_version_1_is_taken_on(path, ours, theirs):
    _make_version_1(path)
    with closing(Store.open(path)) as store:
        _register(store, "new.example")
    _make_version_1(path)
    Store.open(path, ours).close()
    assert _unsealed(path) == 0
    _refused(path, theirs, "another")


@pytest.mark.parametrize("is_newest_sealed", [True, False])
def test_keys_sealed_and_not_side_by_side_become_sealed(path, ours, theirs, is_newest_sealed):
    if is_newest_sealed:
        _plant(path, "sealed.example", ours.seal(make_key(1024).private_key))
    else:
        Store.open(path, ours).close()
        _plant(path, "plain.example", make_key(1024).private_key)
    _make_version_1(path)
    assert _unsealed(path) == 1
    _refused(path, None, "sealed with a passphrase")
    _refused(path, theirs, "sealed with another passphrase")
    assert _unsealed(path) == 1
    Store.open(path, ours).close()
    assert _unsealed(path) == 0


def test_a_key_that_came_in_beside_the_marker_is_sealed(path, ours):
    Store.open(path, ours).close()
    _plant(path, "plain.example", make_key(1024).private_key)
    Store.open(path, ours).close()
    assert _unsealed(path) == 0


def test_nothing_unsealed_stays_in_the_log_while_others_use_the_file(path, ours):
    with closing(Store.open(path)) as other:
        key = _register(other, "new.example")
        with closing(Store.open(path, ours)):
            data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"BEGIN PRIVATE KEY" not in data
    assert key.split(b"\n")[3] not in data


def test_a_log_that_cannot_be_emptied_is_told(path, ours, monkeypatch):
    monkeypatch.setattr("dkimctl.service.store._BUSY_SECONDS", 0.1)
    with closing(Store.open(path)) as other:
        _register(other, "new.example")
        with other.reading() as reader:
            reader.execute(select(schema.registrations.c.selector)).all()
            with pytest.raises(UsageError, match="hold private keys") as caught:
                Store.open(path, ours)
    assert "backup" in caught.value.hint
    Store.open(path, ours).close()


@contextmanager
def _being_read(path: Path) -> Iterator[None]:
    """Somebody, such as a backup, reads the file all the while: its log cannot be emptied."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM registrations").fetchone()
        yield


def test_a_reader_of_a_sealed_file_keeps_nobody_from_opening_it(
    path: Path, ours: PrivateKeyEncryptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkimctl.service.store._BUSY_SECONDS", 0.1)
    Store.open(path, ours).close()
    with _being_read(path):
        with closing(Store.open(path)) as store:
            create_client(store, "another")
        Store.open(path, ours).close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs the locks of SQLite on Linux")
def test_another_who_empties_the_log_is_waited_for(path: Path, ours: PrivateKeyEncryptor) -> None:
    """SQLite's own busy time-out does not hold for the lock of a checkpoint."""
    Store.open(path, ours).close()
    holding = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'r+b'); "
        "fcntl.lockf(file, fcntl.LOCK_EX, 1, 121); print(flush=True); time.sleep(1)"
    )
    with closing(Store.open(path)) as store:
        create_client(store, "another")
        log = f"{path}-shm"
        words = [sys.executable, "-c", holding, log]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            started = time.monotonic()
            Store.open(path, ours).close()
            assert time.monotonic() - started > 0.5
