"""RSA key pairs: made for waiting requests, none of which waits too long, and encrypted."""

from __future__ import annotations

import base64
import gc
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.service import registrations
from dkimctl.service.clients import authenticate, cancel_delivery, create_client, list_clients
from dkimctl.service.database import open_key_store, open_store
from dkimctl.service.key_pairs import (
    PLAIN_HEADER,
    KeyPair,
    KeyQueue,
    KeysNotInTime,
    Passphrase,
    WrongPassphrase,
    make_key,
)
from dkimctl.service.registrations import RegistrationName, StoredRegistration
from thread_limits import FewThreads


@pytest.mark.interface("2.4", "value")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize("key_len", [1024, 2048])
def test_p_is_the_public_half_of_the_private_key(key_len):
    pair = make_key(key_len)
    options, _, encoded = pair.value.partition(" p=")
    assert options == "v=DKIM1; g=*; k=rsa;"
    public = serialization.load_der_public_key(base64.b64decode(encoded, validate=True))
    private = serialization.load_pem_private_key(pair.private_key, password=None)
    assert isinstance(public, rsa.RSAPublicKey)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert public.key_size == key_len
    signature = private.sign(b"message", padding.PKCS1v15(), hashes.SHA256())
    public.verify(signature, b"message", padding.PKCS1v15(), hashes.SHA256())


def test_every_key_is_new(fixed_keys):
    assert make_key(1024).value != fixed_keys[1024].value


def test_the_private_key_is_pkcs8_pem_and_not_in_the_repr(fixed_keys):
    pair = fixed_keys[1024]
    assert pair.private_key.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert "PRIVATE" not in repr(pair)


# Keys for waiting requests.


def _pair(key_len):
    return KeyPair(str(key_len), b"")


def _slow(key_len):
    time.sleep(0.05)
    return _pair(key_len)


def _queue(make=_pair, **changes):
    return KeyQueue(make, **{"max_waiting": 6, "limit": 5.0, "threads": 2, **changes})


@pytest.mark.parametrize("allowed", [0, 1, 99])
def test_all_keys_are_made_with_the_threads_there_are(allowed):
    queue = _queue(start_thread=FewThreads(allowed))
    made = queue.make_all("me", [1024, 2048, 1024])
    assert made == [_pair(1024), _pair(2048), _pair(1024)]
    assert queue.make_all("me", []) == []


@pytest.mark.parametrize("allowed", [0, 1])
def test_several_requests_share_the_threads_there_are(allowed):
    queue = _queue(_slow, start_thread=FewThreads(allowed))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda name: queue.make_all(name, [1024] * 3), "abcd"))
    assert [len(made) for made in results] == [3] * 4


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_key_that_fails_is_told_for_itself(allowed):
    def fail(key_len):
        if key_len == 2048:
            raise OSError("no randomness")
        return _pair(key_len)

    made = _queue(fail, start_thread=FewThreads(allowed)).make_all("me", [1024, 2048])
    assert isinstance(made[0], KeyPair)
    assert isinstance(made[1], OSError)


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_request_whose_keys_are_not_made_in_time_gets_none(allowed):
    made: list[int] = []

    def make(key_len):
        made.append(key_len)
        return _slow(key_len)

    queue = _queue(make, limit=0.4, threads=1, start_thread=FewThreads(allowed))
    started = time.monotonic()
    with pytest.raises(KeysNotInTime):
        queue.make_all("me", [1024] * 100)
    assert time.monotonic() - started < 5
    time.sleep(0.2)
    assert len(made) < 20, "nothing is made for nobody"


def test_the_threads_end_with_the_queue():
    names = set(threading.enumerate())
    queue = _queue()
    queue.make_all("me", [1024] * 10)
    del queue
    gc.collect()
    deadline = time.monotonic() + 5
    while {thread for thread in threading.enumerate() if thread.name == "key"} - names:
        assert time.monotonic() < deadline
        time.sleep(0.01)


class _Held:
    """A queue whose keys are made when the test says so."""

    def __init__(self, **changes):
        self.release = threading.Event()
        self.queue = _queue(self._make, **{"limit": 20.0, "threads": 1, **changes})
        self._pool = ThreadPoolExecutor(16)
        self._waiting: list[Any] = []

    def _make(self, key_len):
        self.release.wait(20)
        return _pair(key_len)

    def wait(self, client_id, *lengths):
        """A request that waits."""
        before = len(self.queue._waiting)
        self._waiting.append(self._pool.submit(self.queue.make_all, client_id, lengths))
        deadline = time.monotonic() + 5
        while len(self.queue._waiting) == before:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def refuses(self, client_id, *lengths):
        """After how many seconds the client may come back."""
        started = time.monotonic()
        with pytest.raises(KeysNotInTime) as caught:
            self.queue.make_all(client_id, lengths)
        assert time.monotonic() - started < 2, "it is told at once"
        return caught.value.retry_after

    def finish(self):
        self.release.set()
        for future in self._waiting:
            assert all(isinstance(key, KeyPair) for key in future.result())
        self._pool.shutdown()


@pytest.fixture
def held():
    made: list[_Held] = []

    def make(**changes):
        made.append(_Held(**changes))
        return made[-1]

    yield make
    for one in made:
        one.finish()


def test_too_many_requests_are_refused_at_once(held):
    waiting = held(max_waiting=2)
    waiting.wait("a", 1024)
    waiting.wait("b", 1024)
    assert waiting.refuses("c", *[2048] * 50) >= 1


def test_requests_that_are_answered_soon_may_be_many(held):
    waiting = held(max_waiting=2)
    for _ in range(8):
        waiting.wait("me", 1024)


def test_what_cannot_be_made_in_time_is_refused_and_told_when_to_come_back(held):
    waiting = held()
    waiting.wait("a", *[2048] * 200)  # 10 s
    assert 2 <= waiting.refuses("b", *[2048] * 300) <= 20


def test_one_client_cannot_take_more_than_half_of_the_queue(held):
    by_number = held(max_waiting=4)
    for _ in range(2):
        by_number.wait("greedy", *[2048] * 25)
    by_number.refuses("greedy", *[2048] * 25)
    by_number.wait("modest", *[2048] * 25)
    by_time = held(max_waiting=99)
    for _ in range(2):
        by_time.wait("greedy", *[2048] * 90)  # 4.5 s each
    by_time.refuses("greedy", *[2048] * 90)
    by_time.wait("modest", *[2048] * 90)


# Passphrases. That the data has one of them is in test_passphrase.py.


def test_only_the_same_passphrase_decrypts_a_key(fixed_keys):
    marker = Passphrase(b"ours").new_marker()
    pem = fixed_keys[1024].private_key
    encrypted = Passphrase(b"ours").unlock(marker).encrypt(pem)
    assert Passphrase(b"ours").unlock(marker).decrypt(encrypted) == pem
    assert pem[30:60] not in encrypted
    with pytest.raises(WrongPassphrase):
        Passphrase(b"theirs").unlock(marker)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(octets=st.binary(min_size=1, max_size=5000))
def test_any_passphrase_works(octets):
    passphrase = Passphrase(octets)
    fernet = passphrase.unlock(passphrase.new_marker())
    assert fernet.decrypt(fernet.encrypt(b"key")) == b"key"


def test_a_key_that_another_program_encrypted_is_decrypted(fixed_keys):
    pem = fixed_keys[1024].private_key
    key = serialization.load_pem_private_key(pem, None)
    foreign = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pw"),
    )
    assert Passphrase(b"pw").decrypt_old(foreign) == pem
    with pytest.raises(WrongPassphrase):
        Passphrase(b"px").decrypt_old(foreign)


@pytest.fixture(scope="module")
def ours():
    return Passphrase(b"ours")


@pytest.fixture(scope="module")
def theirs():
    return Passphrase(b"theirs")


@pytest.fixture
def path(tmp_path):
    """A data file with a registration whose key is not encrypted."""
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        create_client(store, "me")
        _register(store, "old.example")
    return path


@pytest.fixture
def empty(tmp_path):
    """A data file without a registration."""
    path = tmp_path / "empty.db"
    with closing(open_store(path)) as store:
        create_client(store, "me")
    return path


@contextmanager
def _changed(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def _register(store, domain):
    pair = make_key(1024)
    registration = StoredRegistration(
        "me", domain, "s1", 1024, "2026-11-21T12:00+00:00", 0, True, pair.value,
        "2026-11-21T12:00:00+00:00",
    )  # fmt: skip
    assert registrations.add_all(store, {registration: pair.private_key})
    return pair.private_key


def _make_version_1(path):
    """As dkimctl wrote it before there were markers."""
    with _changed(path) as connection:
        for table in ("passphrases", "dkimctl_version"):
            connection.execute(f"DROP TABLE {table}")
        for column in ("previous_hash", "previous_until"):
            connection.execute(f"ALTER TABLE clients DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")


def _plant(path, domain, pem):
    with _changed(path) as connection:
        row = ("me", domain, "s1", 1024, "", 0, 1, "", "", pem)
        connection.execute(
            "INSERT INTO registrations (client_id, sign_domain, selector, key_len, start_date,"
            ' "default", enable, value, regist_date, private_key) VALUES (?,?,?,?,?,?,?,?,?,?)',
            row,
        )


def _plain_keys(path):
    with _changed(path) as connection:
        keys = connection.execute("SELECT private_key FROM registrations").fetchall()
    return sum(key.startswith(PLAIN_HEADER) for (key,) in keys)


def _stored_key(path, domain):
    with _changed(path) as connection:
        query = "SELECT private_key FROM registrations WHERE sign_domain = ?"
        (key,) = connection.execute(query, (domain,)).fetchone()
    return bytes(key)


def _require_refused(path, passphrase, match):
    """Open the file as a process that makes keys."""
    with pytest.raises(UsageError, match=match) as caught:
        (open_store(path, passphrase) if passphrase else open_key_store(path)).close()
    assert "DKIMCTL_SERVICE_PASSPHRASE" in caught.value.hint


@pytest.fixture
def old_data(tmp_path):
    """A data file before revision 0003: two keys of PKCS #8, each with a salt of its own."""
    path = tmp_path / "old.db"
    script = Path(__file__).parents[2] / "fixtures" / "service" / "revision-0002.sql"
    with _changed(path) as connection:
        connection.executescript(script.read_text(encoding="utf-8"))
    path.chmod(0o600)
    return path


def test_data_of_earlier_versions_is_upgraded_with_its_keys(old_data):
    with _changed(old_data) as connection:
        (old_key, *_), (old_marker, *_) = (
            connection.execute(f"SELECT {column} FROM {table}").fetchone()
            for column, table in (("private_key", "registrations"), ("marker", "passphrases"))
        )
    _require_refused(old_data, Passphrase(b"another"), "encrypted with another passphrase")
    assert _stored_key(old_data, "a.example") == old_key, "nothing has changed"
    with closing(open_store(old_data, Passphrase(b"an old passphrase"))) as store:
        rows = {row.sign_domain: row for row in registrations.list_registrations(store)}
        for domain in ("a.example", "b.example"):
            stored = _stored_key(old_data, domain)
            assert stored.startswith(b"gAAAA")
            private = serialization.load_pem_private_key(store.unseal(stored), None)
            public = private.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            assert rows[domain].value.endswith(base64.b64encode(public).decode())
        assert authenticate(store, "me", "s" * 40)
        assert cancel_delivery(store, "me", "delivery-1")
        _register(store, "new.example")
    with _changed(old_data) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert not {"key_pool", "failed_logins"} & tables
        assert connection.execute("SELECT count(*) FROM audit").fetchone() == (4,)
    _require_refused(old_data, Passphrase(b"another"), "encrypted with another passphrase")
    data = b"".join(file.read_bytes() for file in old_data.parent.iterdir())
    assert old_key.split(b"\n")[3] not in data
    assert old_marker.split(b"\n")[1] not in data


def test_data_of_earlier_versions_is_upgraded_without_the_passphrase_too(old_data):
    with closing(open_store(old_data)) as store:
        assert [client.client_id for client in list_clients(store)] == ["me"]
    _require_refused(old_data, None, "encrypted with a passphrase")
    with closing(open_store(old_data, Passphrase(b"an old passphrase"))) as store:
        assert store.unseal(_stored_key(old_data, "b.example")).startswith(PLAIN_HEADER)


def test_with_a_passphrase_old_keys_are_encrypted_and_leave_no_trace(path, ours):
    old = _stored_key(path, "old.example")
    with closing(open_store(path, ours)) as store:
        new = _register(store, "new.example")
        assert store.unseal(_stored_key(path, "old.example")) == old
        assert store.unseal(_stored_key(path, "new.example")) == new
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for key in (old, new):
        assert key.split(b"\n")[3] not in data
    assert b"BEGIN PRIVATE KEY" not in data


@pytest.mark.parametrize("data", ["empty", "path"])
def test_the_first_passphrase_becomes_that_of_the_file(request, data, ours, theirs):
    path = request.getfixturevalue(data)
    open_store(path, ours).close()
    _require_refused(path, theirs, "encrypted with another passphrase")
    _require_refused(path, None, "encrypted with a passphrase")
    open_store(path, ours).close()


def test_a_new_file_has_its_passphrase_at_once(tmp_path, ours, theirs):
    path = tmp_path / "new.db"
    with closing(open_store(path, ours)):
        _require_refused(path, theirs, "encrypted with another passphrase")


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


def test_a_mix_of_plain_and_encrypted_keys_becomes_encrypted(path, theirs, old_data):
    """Of a version that had no markers."""
    _plant(path, "encrypted.example", _stored_key(old_data, "a.example"))
    _make_version_1(path)
    assert _plain_keys(path) == 1
    _require_refused(path, None, "encrypted with a passphrase")
    _require_refused(path, theirs, "encrypted with another passphrase")
    assert _plain_keys(path) == 1
    open_store(path, Passphrase(b"an old passphrase")).close()
    assert _plain_keys(path) == 0


def test_many_keys_are_encrypted_some_at_a_time(path, ours, monkeypatch):
    monkeypatch.setattr("dkimctl.service.database._AT_ONCE", 2)
    pem = make_key(1024).private_key
    for number in range(6):
        _plant(path, f"d{number}.example", pem)
    with closing(open_store(path, ours)) as store:
        assert _plain_keys(path) == 0
        assert store.unseal(_stored_key(path, "d3.example")) == pem


def test_no_plain_key_stays_in_the_log_while_others_use_the_file(path, ours):
    with closing(open_store(path)) as other:
        key = _register(other, "new.example")
        with closing(open_store(path, ours)):
            data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"BEGIN PRIVATE KEY" not in data
    assert key.split(b"\n")[3] not in data


@pytest.fixture
def impatient(monkeypatch):
    """Waiting for another process ends soon."""
    monkeypatch.setattr("dkimctl.service.database.BUSY_SECONDS", 0.1)


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
def _being_read(path):
    """Another process, such as a backup, reads the file, so its log cannot be emptied."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM registrations").fetchone()
        yield


def test_a_file_with_encrypted_keys_can_be_opened_while_it_is_read(path, ours, impatient):
    open_store(path, ours).close()
    with _being_read(path):
        with closing(open_store(path)) as store:
            create_client(store, "another")
        open_store(path, ours).close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the locks of SQLite on Linux")
def test_the_checkpoint_of_another_process_is_waited_for(path, ours):
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
