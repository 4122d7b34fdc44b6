"""RSA key pairs: made for waiting requests, none of which waits too long, and encrypted."""

from __future__ import annotations

import base64
import gc
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

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
    make_key,
)
from dkimctl.service.registrations import RegistrationName, StoredRegistration
from thread_limits import FewThreads


def _value(pem):
    """The TXT value that belongs to a private key."""
    private: Any = serialization.load_pem_private_key(pem, None)
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"v=DKIM1; g=*; k=rsa; p={base64.b64encode(public).decode()}"


@pytest.mark.interface("2.4", "value")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize("key_len", [1024, 2048])
def test_p_is_the_public_half_of_a_new_private_key(key_len, fixed_keys):
    pair = make_key(key_len)
    assert pair.value == _value(pair.private_key) != fixed_keys[key_len].value
    private: Any = serialization.load_pem_private_key(pair.private_key, None)
    assert private.key_size == key_len
    assert pair.private_key.startswith(PLAIN_HEADER)
    assert "PRIVATE" not in repr(pair)


# Keys for waiting requests.


def _pair(key_len):
    return KeyPair(str(key_len), b"")


def _slow(key_len):
    time.sleep(0.05)
    return _pair(key_len)


def _queue(make=_pair, **changes):
    return KeyQueue(make, **{"max_waiting": 6, "limit": 5.0, "threads": 2, **changes})


@pytest.fixture
def allowed(request, monkeypatch):
    """The system allows so many threads for keys."""
    monkeypatch.setattr("dkimctl.threads.start_daemon", FewThreads(request.param))


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("allowed", [0, 1, 99], indirect=True)
def test_requests_share_the_threads_there_are_and_a_key_that_fails_is_told_for_itself():
    def make(key_len):
        if key_len == 2048:
            raise OSError("no randomness")
        return _slow(key_len)

    queue = _queue(make)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda name: queue.make_all(name, [1024, 2048, 1024]), "abcd"))
    for first, second, third in results:
        assert first == third == _pair(1024)
        assert isinstance(second, OSError)
    assert queue.make_all("me", []) == []


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("allowed", [0, 1], indirect=True)
def test_a_request_whose_keys_are_not_made_in_time_gets_none():
    made: list[int] = []

    def make(key_len):
        made.append(key_len)
        return _slow(key_len)

    queue = _queue(make, limit=0.4, threads=1)
    started = time.monotonic()
    with pytest.raises(KeysNotInTime):
        queue.make_all("me", [1024] * 100)
    assert time.monotonic() - started < 5
    time.sleep(0.2)
    assert len(made) < 20, "nothing is made for nobody"


def test_the_threads_end_with_the_queue():
    before = set(threading.enumerate())
    queue = _queue()
    queue.make_all("me", [1024] * 10)
    started = {thread for thread in set(threading.enumerate()) - before if thread.name == "key"}
    assert len(started) == 2
    del queue
    gc.collect()
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("waiting", "max_waiting", "client_id", "keys", "is_taken"),
    [
        ([("a", 0.01)] * 8, 2, "a", 1, True),  # all are answered soon
        ([("a", 0.01)] * 8, 2, "b", 50, False),  # too many
        ([("a", 10.0)], 6, "b", 300, False),  # not in time
        ([("a", 1.25)] * 2, 4, "a", 25, False),  # half of the queue, by number
        ([("a", 1.25)] * 2, 4, "b", 25, True),
        ([("a", 4.5)] * 2, 99, "a", 90, False),  # by time
        ([("a", 4.5)] * 2, 99, "b", 90, True),
    ],
)
def test_what_would_take_too_long_or_too_much_is_refused_at_once(
    waiting, max_waiting, client_id, keys, is_taken
):
    """`waiting` are requests, each with its seconds; a key of 2048 bits takes 0.05 s at first."""
    queue = _queue(max_waiting=max_waiting, limit=20.0, threads=1)
    queue._waiting += waiting
    if is_taken:
        assert len(queue.make_all(client_id, [2048] * keys)) == keys
        return
    with pytest.raises(KeysNotInTime) as caught:
        queue.make_all(client_id, [2048] * keys)
    assert 1 <= caught.value.retry_after <= 20


# The passphrase of the data.


OURS, THEIRS = Passphrase(b"ours"), Passphrase(b"\xff\x00theirs")


@pytest.fixture
def path(tmp_path):
    """A data file with a registration whose key is not encrypted."""
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        create_client(store, "me")
        _register(store, "old.example")
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


def _stored_keys(path):
    """What is stored of each private key, by domain."""
    with _changed(path) as connection:
        return dict(connection.execute("SELECT sign_domain, private_key FROM registrations"))


def _require_no_trace(path, pem):
    for file in path.parent.iterdir():
        assert PLAIN_HEADER not in file.read_bytes()
        assert pem.split(b"\n")[3] not in file.read_bytes()


def _require_refused(path, passphrase):
    """Open the file as a process that makes keys."""
    match = "encrypted with another passphrase" if passphrase else "encrypted with a passphrase"
    with pytest.raises(UsageError, match=match) as caught:
        (open_store(path, passphrase) if passphrase else open_key_store(path)).close()
    assert "DKIMCTL_SERVICE_PASSPHRASE" in caught.value.hint


def test_data_of_earlier_versions_is_upgraded_with_its_keys(tmp_path):
    """Before revision 0003: two keys of PKCS #8, each with a salt of its own."""
    path = tmp_path / "old.db"
    script = Path(__file__).parents[2] / "fixtures" / "service" / "revision-0002.sql"
    pem = make_key(1024).private_key
    with _changed(path) as connection:
        connection.executescript(script.read_text(encoding="utf-8"))
        path.chmod(0o600)
        (old_marker,) = connection.execute("SELECT marker FROM passphrases").fetchone()
        connection.execute(  # as by a process that knew no passphrase
            "INSERT INTO registrations VALUES ('c.example', 's1', 'me', 1024, '', 0, 1, '', '', ?)",
            [pem],
        )
    old_keys = _stored_keys(path)
    _require_refused(path, THEIRS)
    assert _stored_keys(path) == old_keys, "nothing has changed"
    with closing(open_store(path)) as store:  # which needs no key
        assert [client.client_id for client in list_clients(store)] == ["me"]
    _require_refused(path, None)
    with closing(open_store(path, Passphrase(b"an old passphrase"))) as store:
        stored = _stored_keys(path)
        (row,) = registrations.list_registrations(store, sign_domain="a.example")
        assert row.value == _value(store.unseal(stored["a.example"]))
        assert store.unseal(stored["c.example"]) == pem
        assert authenticate(store, "me", "s" * 40)
        assert cancel_delivery(store, "me", "delivery-1")
        _register(store, "new.example")
    with _changed(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert not {"key_pool", "failed_logins"} & tables
        assert connection.execute("SELECT count(*) FROM audit").fetchone() == (4,)
    _require_refused(path, THEIRS)
    for secret in (*old_keys.values(), old_marker):
        _require_no_trace(path, secret)


@pytest.mark.parametrize("others_use_it", [False, True])
def test_the_first_passphrase_encrypts_all_keys_and_leaves_no_trace(
    path, others_use_it, monkeypatch
):
    monkeypatch.setattr("dkimctl.service.database._AT_ONCE", 2)
    with closing(open_store(path)) as other:
        keys = [_register(other, f"d{number}.example") for number in range(5)]
        if not others_use_it:
            other.close()
        with closing(open_store(path, OURS)) as store:
            keys.append(_register(store, "new.example"))
            assert store.unseal(_stored_keys(path)["d3.example"]) == keys[3]
            for key in keys:
                _require_no_trace(path, key)
    _require_refused(path, THEIRS)
    _require_refused(path, None)
    open_store(path, OURS).close()


@pytest.mark.parametrize("first", [None, Passphrase(b"first")])
def test_a_store_adds_no_key_once_the_passphrase_of_the_file_has_changed(path, first):
    with closing(open_store(path, first)) as store:
        _register(store, "before.example")
        with _changed(path) as connection:
            connection.execute("DELETE FROM registrations WHERE ?", [first is not None])
            connection.execute("DELETE FROM passphrases")
        open_store(path, OURS).close()
        with pytest.raises(UsageError, match="has changed since"):
            _register(store, "after.example")
    assert not any(key.startswith(PLAIN_HEADER) for key in _stored_keys(path).values())
    with closing(open_store(path)) as store:
        assert not registrations.find_all(store, [RegistrationName("after.example", "s1")])


def test_a_file_that_a_backup_reads_can_be_opened_unless_its_log_holds_plain_keys(
    path, monkeypatch
):
    monkeypatch.setattr("dkimctl.service.database.BUSY_SECONDS", 0.1)
    other, reader = open_store(path), sqlite3.connect(path, isolation_level=None)
    with closing(other), closing(reader):
        _register(other, "new.example")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM registrations").fetchone()
        with pytest.raises(UsageError, match="hold unencrypted private keys") as caught:
            open_store(path, OURS)
        assert "backup" in caught.value.hint
        reader.execute("COMMIT")
        open_store(path, OURS).close()
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM registrations").fetchone()
        create_client(other, "another")
        open_store(path, OURS).close()
