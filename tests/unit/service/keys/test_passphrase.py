"""A data file has one passphrase or none, whichever process opens it first."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dkimctl.errors import UsageError
from dkimctl.service import registrations
from dkimctl.service.clients import create_client
from dkimctl.service.database.opening import open_store
from dkimctl.service.database.store import Store
from dkimctl.service.keys.encryption import ENCRYPTED_HEADER, PrivateKeyEncryptor
from dkimctl.service.keys.pairs import make_key
from dkimctl.service.keys.passphrase import require_no_passphrase
from dkimctl.service.registrations import Registration, RegistrationName


@pytest.fixture(scope="module")
def ours() -> PrivateKeyEncryptor:
    return PrivateKeyEncryptor(b"ours")


@pytest.fixture(scope="module")
def theirs() -> PrivateKeyEncryptor:
    return PrivateKeyEncryptor(b"theirs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A data file with a registration whose key is not encrypted."""
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        create_client(store, "me")
        _register(store, "old.example")
    return path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A data file without a registration."""
    path = tmp_path / "empty.db"
    with closing(open_store(path)) as store:
        create_client(store, "me")
    return path


@contextmanager
def _changed(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def _register(store: Store, domain: str) -> bytes:
    pair = make_key(1024)
    registration = Registration(
        "me", domain, "s1", 1024, "2026-11-21T12:00+00:00", 0, True, pair.value,
        "2026-11-21T12:00:00+00:00",
    )  # fmt: skip
    assert registrations.add_all(store, {registration: pair.private_key})
    return pair.private_key


def _make_version_1(path: Path) -> None:
    """As dkimctl wrote it before there were markers."""
    with _changed(path) as connection:
        for table in ("passphrases", "key_pool", "failed_logins", "audit", "dkimctl_version"):
            connection.execute(f"DROP TABLE {table}")
        for column in ("previous_hash", "previous_until"):
            connection.execute(f"ALTER TABLE clients DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")


def _plant(path: Path, domain: str, pem: bytes) -> None:
    with _changed(path) as connection:
        row = ("me", domain, "s1", 1024, "", 0, 1, "", "", pem)
        connection.execute(
            "INSERT INTO registrations (client_id, sign_domain, selector, key_len, start_date,"
            ' "default", enable, value, regist_date, private_key) VALUES (?,?,?,?,?,?,?,?,?,?)',
            row,
        )


def _plain_keys(path: Path) -> int:
    with _changed(path) as connection:
        keys = connection.execute("SELECT private_key FROM registrations").fetchall()
    return sum(not key.startswith(ENCRYPTED_HEADER) for (key,) in keys)


def _stored_key(path: Path, domain: str) -> bytes:
    with _changed(path) as connection:
        query = "SELECT private_key FROM registrations WHERE sign_domain = ?"
        (key,) = connection.execute(query, (domain,)).fetchone()
    return bytes(key)


def _require_refused(path: Path, encryptor: PrivateKeyEncryptor | None, match: str) -> None:
    """Open the file as a process that makes keys."""
    with (
        pytest.raises(UsageError, match=match) as caught,
        closing(open_store(path, encryptor)) as store,
        store.reading() as connection,
    ):
        require_no_passphrase(store, connection)
    assert "DKIMCTL_SERVICE_PASSPHRASE" in caught.value.hint


def test_with_a_passphrase_old_keys_are_encrypted_and_leave_no_trace(path, ours):
    old = _stored_key(path, "old.example")
    with closing(open_store(path, ours)) as store:
        new = _register(store, "new.example")
        assert ours.decrypt(_stored_key(path, "old.example")) == old
        assert ours.decrypt(_stored_key(path, "new.example")) == new
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for key in (old, new):
        assert key.split(b"\n")[3] not in data
    assert b"BEGIN PRIVATE KEY" not in data


def test_the_first_passphrase_becomes_that_of_the_file(empty, ours, theirs):
    open_store(empty, ours).close()
    _require_refused(empty, theirs, "encrypted with another passphrase")
    _require_refused(empty, None, "encrypted with a passphrase")
    open_store(empty, ours).close()


def test_a_new_file_has_its_passphrase_at_once(tmp_path, ours, theirs):
    path = tmp_path / "new.db"
    with closing(open_store(path, ours)):
        _require_refused(path, theirs, "encrypted with another passphrase")


def test_a_file_with_encrypted_keys_needs_their_passphrase(path, ours, theirs):
    open_store(path, ours).close()
    _require_refused(path, theirs, "encrypted with another passphrase")
    _require_refused(path, None, "encrypted with a passphrase")


def test_a_store_opened_without_a_passphrase_adds_no_key_once_the_file_has_one(path, ours):
    with closing(open_store(path)) as old:
        _register(old, "before.example")
        open_store(path, ours).close()
        with pytest.raises(UsageError, match="has changed since"):
            _register(old, "after.example")
    assert _plain_keys(path) == 0
    with closing(open_store(path)) as store:
        assert not registrations.find_all(store, [RegistrationName("after.example", "s1")])


def test_a_store_opened_with_another_passphrase_adds_no_key(empty, ours, theirs):
    with closing(open_store(empty, ours)) as store:
        with _changed(empty) as connection:
            connection.execute("DELETE FROM passphrases")
        open_store(empty, theirs).close()
        with pytest.raises(UsageError, match="has changed since"):
            _register(store, "a.example")


def test_a_file_of_version_1_is_upgraded(path, ours, theirs):
    _make_version_1(path)
    with closing(open_store(path)) as store:
        _register(store, "new.example")
    _make_version_1(path)
    open_store(path, ours).close()
    assert _plain_keys(path) == 0
    _require_refused(path, theirs, "another")


@pytest.mark.parametrize("is_newest_encrypted", [True, False])
def test_a_mix_of_plain_and_encrypted_keys_becomes_encrypted(
    path, ours, theirs, is_newest_encrypted
):
    if is_newest_encrypted:
        _plant(path, "encrypted.example", ours.encrypt(make_key(1024).private_key))
    else:
        open_store(path, ours).close()
        _plant(path, "plain.example", make_key(1024).private_key)
    _make_version_1(path)
    assert _plain_keys(path) == 1
    _require_refused(path, None, "encrypted with a passphrase")
    _require_refused(path, theirs, "encrypted with another passphrase")
    assert _plain_keys(path) == 1
    open_store(path, ours).close()
    assert _plain_keys(path) == 0


def test_many_keys_are_encrypted_some_at_a_time(path, ours, monkeypatch):
    monkeypatch.setattr("dkimctl.service.keys.passphrase._AT_ONCE", 2)
    pem = make_key(1024).private_key
    for number in range(6):
        _plant(path, f"d{number}.example", pem)
    open_store(path, ours).close()
    assert _plain_keys(path) == 0
    assert ours.decrypt(_stored_key(path, "d3.example")) == pem


def test_a_plain_key_added_after_the_marker_is_encrypted(path, ours):
    open_store(path, ours).close()
    _plant(path, "plain.example", make_key(1024).private_key)
    open_store(path, ours).close()
    assert _plain_keys(path) == 0


def test_no_plain_key_stays_in_the_log_while_others_use_the_file(path, ours):
    with closing(open_store(path)) as other:
        key = _register(other, "new.example")
        with closing(open_store(path, ours)):
            data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"BEGIN PRIVATE KEY" not in data
    assert key.split(b"\n")[3] not in data


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for another process ends soon."""
    for module in ("sqlite", "sqlite_engine"):
        monkeypatch.setattr(f"dkimctl.service.database.{module}.BUSY_SECONDS", 0.1)


def test_a_log_that_cannot_be_emptied_is_reported(path, ours, impatient):
    with closing(open_store(path)) as other:
        _register(other, "new.example")
        with (
            _being_read(path),
            pytest.raises(UsageError, match="hold unencrypted private keys") as caught,
        ):
            open_store(path, ours)
    assert "backup" in caught.value.hint
    open_store(path, ours).close()


@contextmanager
def _being_read(path: Path) -> Iterator[None]:
    """Another process, such as a backup, reads the file, so its log cannot be emptied."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM registrations").fetchone()
        yield


def test_a_file_with_encrypted_keys_can_be_opened_while_it_is_read(
    path: Path, ours: PrivateKeyEncryptor, impatient: None
) -> None:
    open_store(path, ours).close()
    with _being_read(path):
        with closing(open_store(path)) as store:
            create_client(store, "another")
        open_store(path, ours).close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the locks of SQLite on Linux")
def test_the_checkpoint_of_another_process_is_waited_for(
    path: Path, ours: PrivateKeyEncryptor
) -> None:
    """SQLite's own busy timeout does not apply to the lock of a checkpoint."""
    open_store(path, ours).close()
    holding = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'r+b'); "
        "fcntl.lockf(file, fcntl.LOCK_EX, 1, 121); print(flush=True); time.sleep(1)"
    )
    with closing(open_store(path)) as store:
        create_client(store, "another")
        log = f"{path}-shm"
        words = [sys.executable, "-c", holding, log]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            started = time.monotonic()
            open_store(path, ours).close()
            assert time.monotonic() - started > 0.5
