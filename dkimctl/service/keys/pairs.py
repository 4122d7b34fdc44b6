"""RSA key pairs, and the TXT value that publishes one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


@dataclass(frozen=True, slots=True)
class KeyPair:
    """`value` is the TXT value of the public key; `private_key` is PKCS #8 in PEM."""

    value: str
    private_key: bytes = field(repr=False)


KEY_LENGTHS = (1024, 2048)
"""In bits (interface 8)."""

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
