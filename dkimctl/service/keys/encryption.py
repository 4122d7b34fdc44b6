"""The encryption of private keys with a passphrase.

Private keys are encrypted in a form that other tools read as well: PKCS #8 (RFC 5958 section 3)
with PBES2 (RFC 8018 appendix A.4), scrypt (RFC 7914 section 7) and AES-256 in CBC mode.
`cryptography` reads that but does not write it: with its own scheme, PBKDF2 of 2,048 rounds, a
passphrase is guessed a thousand times as fast.
"""

from __future__ import annotations

import base64
import os
import textwrap

from cryptography.hazmat.primitives import padding, serialization
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

_COST, _BLOCK_SIZE, _PARALLEL = 1 << 14, 8, 1  # 16 MiB per guess; OpenSSL takes no more
ENCRYPTED_HEADER = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
_ENCRYPTED_FOOTER = b"-----END ENCRYPTED PRIVATE KEY-----"

MAX_PASSPHRASE = 1024
"""Octets of the longest passphrase that OpenSSL takes."""

# DER tags (X.690), and object identifiers in DER.
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # 1.2.840.113549.1.5.13
_SCRYPT = bytes.fromhex("06092b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_AES_256_CBC = bytes.fromhex("060960864801650304012a")  # 2.16.840.1.101.3.4.1.42


class WrongPassphrase(ValueError):
    """A key was encrypted with another passphrase."""


class PrivateKeyEncryptor:
    """Encrypts private keys with a passphrase, and decrypts those encrypted with the same one.

    The passphrase is octets in any encoding, as OpenSSL reads it from the environment. It is
    stretched only once, with one salt: stretching it for each key would take far longer than
    making the key.
    """

    def __init__(self, passphrase: bytes) -> None:
        self._passphrase = passphrase
        self._salt = os.urandom(16)
        scrypt = Scrypt(self._salt, length=32, n=_COST, r=_BLOCK_SIZE, p=_PARALLEL)
        self._key = scrypt.derive(self._passphrase)

    @staticmethod
    def is_encrypted(pem: bytes) -> bool:
        return pem.startswith(ENCRYPTED_HEADER)

    def encrypt(self, pem: bytes) -> bytes:
        """Encrypt a private key (PKCS #8 in PEM); PEM too."""
        plaintext = base64.b64decode(b"".join(pem.split(b"\n")[1:-2]))
        iv = os.urandom(16)
        padder = padding.PKCS7(128).padder()
        cipher = Cipher(algorithms.AES(self._key), modes.CBC(iv)).encryptor()
        padded = padder.update(plaintext) + padder.finalize()
        ciphertext = cipher.update(padded) + cipher.finalize()
        numbers = (_integer(number) for number in (_COST, _BLOCK_SIZE, _PARALLEL))
        kdf = _sequence(_SCRYPT, _sequence(_element(_OCTETS, self._salt), *numbers))
        encryption = _sequence(_AES_256_CBC, _element(_OCTETS, iv))
        scheme = _sequence(_PBES2, _sequence(kdf, encryption))
        text = base64.b64encode(_sequence(scheme, _element(_OCTETS, ciphertext))).decode()
        lines = (line.encode() for line in textwrap.wrap(text, 64))
        return b"\n".join((ENCRYPTED_HEADER, *lines, _ENCRYPTED_FOOTER, b""))

    def decrypt(self, pem: bytes) -> bytes:
        """The private key (PKCS #8 in PEM). Raises WrongPassphrase."""
        try:
            key = serialization.load_pem_private_key(pem, self._passphrase)
        except ValueError:
            raise WrongPassphrase from None
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


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
