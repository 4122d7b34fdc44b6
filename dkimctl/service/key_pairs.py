"""RSA key pairs: made in time for the requests that wait for them, and encrypted."""

from __future__ import annotations

import base64
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import InvalidSignature
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from dkimctl.threads import DaemonThreadPool

KEY_LENGTHS = (1024, 2048)  # in bits (interface 8)

PLAIN_HEADER = b"-----BEGIN PRIVATE KEY-----"
"""Begins a private key that is stored without encryption."""

_SALT = 16  # octets


@dataclass(frozen=True, slots=True)
class KeyPair:
    """`value` is the TXT value of the public key; `private_key` is PKCS #8 in PEM."""

    value: str
    private_key: bytes = field(repr=False)


KeyMaker = Callable[[int], KeyPair]
"""Makes a new pair of that many bits; called from several threads at once."""


def make_key(key_len: int) -> KeyPair:
    """A new RSA pair of `key_len` bits.

    The public half is a SubjectPublicKeyInfo, as published keys are in practice
    (RFC 6376, errata 3017 of section 3.6.1), in the shape of interface 2.4.
    """
    private = rsa.generate_private_key(public_exponent=65537, key_size=key_len)
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    value = f"v=DKIM1; g=*; k=rsa; p={base64.b64encode(public).decode('ascii')}"
    return KeyPair(value, _to_pem(private))


class KeysNotInTime(Exception):
    """The keys cannot be made in time; they may be in `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class KeyQueue:
    """Makes the keys of requests, in the order in which these come.

    So many `threads` make them, one for each processor by default: OpenSSL releases the interpreter
    lock. No request waits longer than `limit` seconds, and at most `max_waiting` wait, since each
    holds a thread of the server. A client with a request in the queue cannot take more than half of
    it, by number or by time.
    """

    def __init__(
        self, make: KeyMaker, *, max_waiting: int, limit: float, threads: int | None = None
    ) -> None:
        self._make = make
        self._max_waiting = max_waiting
        self._limit = limit
        self._threads = threads or os.cpu_count() or 1
        self._seconds = {1024: 0.01, 2048: 0.05}  # a guess, until keys have been made
        # The client of each request, and for how many seconds its keys take one processor.
        self._waiting: list[tuple[str, float]] = []
        self._lock = threading.Lock()
        # The threads must not keep the queue alive: they end with it.
        self._pool = DaemonThreadPool[Callable[[], None]](lambda job: job(), "key")
        weakref.finalize(self, self._pool.close)

    def make_all(self, client_id: str, lengths: Sequence[int]) -> list[KeyPair | Exception]:
        """A key for each length in bits, or why it could not be made. Raises KeysNotInTime."""
        if not lengths:
            return []
        request = client_id, sum(self._seconds[key_len] for key_len in lengths)
        with self._lock:
            self._require_room(*request)
            self._waiting.append(request)
            has_threads = self._pool.grow(self._threads) > 0
        deadline = time.monotonic() + self._limit
        keys: list[Future[KeyPair | Exception]] = [Future() for _ in lengths]
        try:
            for key, key_len in zip(keys, lengths, strict=True):
                if has_threads:
                    self._pool.submit(partial(self._work, key, key_len))
                elif time.monotonic() < deadline:
                    self._work(key, key_len)  # where the system allows no thread
            if wait(keys, max(0, deadline - time.monotonic())).not_done:
                raise KeysNotInTime(self._retry_after())
            return [key.result() for key in keys]
        finally:
            for key in keys:
                key.cancel()
            with self._lock:
                self._waiting.remove(request)

    def _require_room(self, client_id: str, seconds: float) -> None:
        """Raise KeysNotInTime, unless nobody waits, or all are answered soon anyway."""
        total = (sum(each for _, each in self._waiting) + seconds) / self._threads
        if not self._waiting or total < 1.0:  # seconds for which any number of requests may wait
            return
        mine = [each for client, each in self._waiting if client == client_id]
        is_greedy = mine and (
            len(mine) >= max(1, self._max_waiting // 2)
            or (sum(mine) + seconds) / self._threads > self._limit / 2
        )
        if is_greedy or len(self._waiting) >= self._max_waiting or total > self._limit:
            raise KeysNotInTime(self._retry_after())

    def _retry_after(self) -> int:
        """Seconds until half of what is waiting is done."""
        seconds = sum(each for _, each in self._waiting) / self._threads / 2
        return max(1, math.ceil(min(seconds, self._limit)))

    def _work(self, future: Future[KeyPair | Exception], key_len: int) -> None:
        if not future.set_running_or_notify_cancel():
            return
        started = time.monotonic()
        try:
            key = self._make(key_len)
        except Exception as error:  # noqa: BLE001 - of this key alone
            future.set_result(error)
            return
        taken = time.monotonic() - started
        self._seconds[key_len] += 0.1 * (taken - self._seconds[key_len])  # of a new measurement
        future.set_result(key)


class WrongPassphrase(ValueError):
    """A key was encrypted with another passphrase."""


class Passphrase:
    """What private keys are encrypted with: octets in any encoding, as the environment has them.

    scrypt makes one key of them for all private keys of a service, with the salt in its marker: to
    stretch it for each key would take far longer than making the key.
    """

    def __init__(self, octets: bytes) -> None:
        self._octets = octets

    def new_marker(self) -> bytes:
        """Tells this passphrase from others, and holds the salt of a service's private keys."""
        salt = os.urandom(_SALT)
        return salt + self._fernet(salt).encrypt(b"")

    def unlock(self, marker: bytes) -> Fernet:
        """What encrypts and decrypts private keys in PEM. Raises WrongPassphrase."""
        fernet = self._fernet(marker[:_SALT])
        try:
            fernet.decrypt(marker[_SALT:])
        except (InvalidToken, InvalidSignature):
            raise WrongPassphrase from None
        return fernet

    def _fernet(self, salt: bytes) -> Fernet:
        scrypt = Scrypt(salt, length=32, n=1 << 16, r=8, p=1)  # 64 MiB a guess
        return Fernet(base64.urlsafe_b64encode(scrypt.derive(self._octets)))

    def decrypt_old(self, pem: bytes) -> bytes:
        """A private key as before revision 0003: PKCS #8 with PBES2. Raises WrongPassphrase."""
        try:
            # The keys are ours, and looking for their factors would take long.
            key = serialization.load_pem_private_key(
                pem, self._octets, unsafe_skip_rsa_key_validation=True
            )
        except ValueError:
            raise WrongPassphrase from None
        return _to_pem(key)


def _to_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
