"""Private keys under a passphrase, in a form that other tools read as well.

PKCS #8 (RFC 5958 section 3) with PBES2 (RFC 8018 appendix A.4), scrypt (RFC 7914 section 7) and
AES-256 in CBC mode. `cryptography` reads that and does not write it: with its own scheme, PBKDF2
of 2,048 rounds, a passphrase is guessed a thousand times as fast.
"""

from __future__ import annotations

import base64
import os
import textwrap

from cryptography.hazmat.primitives import padding, serialization
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

_COST, _BLOCK_SIZE, _PARALLEL = 1 << 14, 8, 1  # 16 MiB for each guess; OpenSSL takes no more
HEAD, _TAIL = b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"-----END ENCRYPTED PRIVATE KEY-----"

MAX_PASSPHRASE = 1024
"""Octets of a passphrase that OpenSSL takes; with more, it could not open what was sealed."""

# Tags of DER (X.690), and object identifiers as DER has them.
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # 1.2.840.113549.1.5.13
_SCRYPT = bytes.fromhex("06092b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_AES_256_CBC = bytes.fromhex("060960864801650304012a")  # 2.16.840.1.101.3.4.1.42


class WrongPassphrase(ValueError):
    """A key was sealed with another passphrase."""


class PrivateKeyEncryptor:
    """Seals keys, and opens those that were sealed with the same passphrase.

    A passphrase is octets, as OpenSSL has them from the environment, of whatever encoding.
    The passphrase is stretched once, with a salt of its own: stretching it for each key would take
    far longer than making the key.
    """

    def __init__(self, passphrase: bytes) -> None:
        self._passphrase = passphrase
        self._salt = os.urandom(16)
        stretch = Scrypt(self._salt, length=32, n=_COST, r=_BLOCK_SIZE, p=_PARALLEL)
        self._key = stretch.derive(self._passphrase)

    def seal(self, pem: bytes) -> bytes:
        """A private key (PKCS #8 in PEM) so that only the passphrase opens it, in PEM too."""
        plain = base64.b64decode(b"".join(pem.split(b"\n")[1:-2]))
        block = os.urandom(16)
        padder = padding.PKCS7(128).padder()
        encryptor = Cipher(algorithms.AES(self._key), modes.CBC(block)).encryptor()
        sealed = encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize()
        numbers = (_integer(number) for number in (_COST, _BLOCK_SIZE, _PARALLEL))
        stretching = _sequence(_SCRYPT, _sequence(_element(_OCTETS, self._salt), *numbers))
        cipher = _sequence(_AES_256_CBC, _element(_OCTETS, block))
        scheme = _sequence(_PBES2, _sequence(stretching, cipher))
        text = base64.b64encode(_sequence(scheme, _element(_OCTETS, sealed))).decode()
        return b"\n".join((HEAD, *(line.encode() for line in textwrap.wrap(text, 64)), _TAIL, b""))

    def open(self, pem: bytes) -> bytes:
        """The key that was sealed, in PEM. Raises WrongPassphrase."""
        try:
            key = serialization.load_pem_private_key(pem, self._passphrase)
        except ValueError:
            raise WrongPassphrase from None
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def is_sealed(pem: bytes) -> bool:
    """Whether a passphrase is needed to read a private key."""
    return pem.startswith(HEAD)


def _sequence(*elements: bytes) -> bytes:
    return _element(_SEQUENCE, b"".join(elements))


def _integer(number: int) -> bytes:
    return _element(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def _element(tag: int, contents: bytes) -> bytes:
    length = len(contents)
    if length < 0x80:
        return bytes((tag, length)) + contents
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size) + contents
