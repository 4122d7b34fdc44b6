"""RSA key pairs: made for waiting requests, none of which waits too long, and encrypted."""

from __future__ import annotations

import base64
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.service.key_pairs import (
    KeyPair,
    KeyQueue,
    KeysNotInTime,
    Passphrase,
    WrongPassphrase,
    make_key,
)
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
