"""RSA key pairs, and the TXT value that publishes one."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dkimctl.system.threads import DaemonThreadPool, StartThread, start_daemon


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
    return KeyPair(
        value=f"v=DKIM1; g=*; k=rsa; p={base64.b64encode(public).decode('ascii')}",
        private_key=private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


@contextmanager
def key_pool(
    make: KeyMaker, start_thread: StartThread = start_daemon
) -> Iterator[Callable[[int], Future[KeyPair]]]:
    """A function that makes keys in the background, with one thread per processor.

    OpenSSL releases the interpreter lock, so the threads run in parallel. Where the system allows
    none, keys are made at once. Those not begun when the block ends are cancelled.
    """
    orders: list[_Order] = []
    pool = DaemonThreadPool(_Order.process, "key", start_thread)

    def order_key(key_len: int) -> Future[KeyPair]:
        order = _Order(Future(), key_len, make)
        orders.append(order)
        if pool.grow(min(len(orders), os.cpu_count() or 1)):
            pool.submit(order)
        else:
            order.process()
        return order.future

    try:
        yield order_key
    finally:
        for order in orders:
            order.future.cancel()
        wait(order.future for order in orders)
        pool.close()


class _Order(NamedTuple):
    future: Future[KeyPair]
    key_len: int
    make: KeyMaker

    def process(self) -> None:
        if self.future.set_running_or_notify_cancel():
            try:
                self.future.set_result(self.make(self.key_len))
            except BaseException as error:  # noqa: BLE001 - raised by Future.result
                self.future.set_exception(error)
