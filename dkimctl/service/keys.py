"""RSA key pairs for signing, and the TXT value that publishes one."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


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
def key_pool(make: KeyMaker) -> Iterator[Callable[[int], Future[KeyPair]]]:
    """A function that has keys made in the background, one thread for each processor.

    OpenSSL frees the interpreter lock, so the threads do run at the same time. Keys that
    nobody waited for when the block ends are not begun.
    """
    pool = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="key")
    try:
        yield lambda key_len: pool.submit(make, key_len)
    finally:
        pool.shutdown(cancel_futures=True)
