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
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
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

_SALT, _IV = 16, 16  # octets


class WrongPassphrase(ValueError):
    """A key was encrypted with another passphrase."""


class PrivateKeyEncryptor:
    """Encrypts private keys with a passphrase, and decrypts those encrypted with the same one.

    The passphrase is octets in any encoding, as OpenSSL reads it from the environment. It is
    stretched only once for each salt, of which each encryptor has one: stretching it for each key
    would take far longer than making the key.
    """

    def __init__(self, passphrase: bytes) -> None:
        self._passphrase = passphrase
        self._salt = os.urandom(_SALT)
        self._stretched: dict[bytes, bytes] = {}

    @staticmethod
    def is_encrypted(pem: bytes) -> bool:
        return pem.startswith(ENCRYPTED_HEADER)

    def encrypt(self, pem: bytes) -> bytes:
        """Encrypt a private key (PKCS #8 in PEM); PEM too."""
        plaintext = base64.b64decode(b"".join(pem.split(b"\n")[1:-2]))
        iv = os.urandom(_IV)
        padder = padding.PKCS7(128).padder()
        cipher = Cipher(algorithms.AES(self._stretch(self._salt)), modes.CBC(iv)).encryptor()
        padded = padder.update(plaintext) + padder.finalize()
        ciphertext = cipher.update(padded) + cipher.finalize()
        document = _sequence(_scheme(self._salt, iv), _element(_OCTETS, ciphertext))
        text = base64.b64encode(document).decode()
        lines = (line.encode() for line in textwrap.wrap(text, 64))
        return b"\n".join((ENCRYPTED_HEADER, *lines, _ENCRYPTED_FOOTER, b""))

    def decrypt(self, pem: bytes) -> bytes:
        """The private key (PKCS #8 in PEM). Raises WrongPassphrase."""
        try:
            key = self._load(pem)
        except ValueError:
            raise WrongPassphrase from None
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def _load(self, pem: bytes) -> PrivateKeyTypes:
        """The key. `cryptography` would stretch the passphrase again. Raises ValueError."""
        document = base64.b64decode(b"".join(pem.split(b"\n")[1:-2]))
        start = document.find(_SCHEME_START)
        salt, iv = (
            document[start + at :][:size] for at, size in ((_SALT_AT, _SALT), (_IV_AT, _IV))
        )
        scheme = _scheme(salt, iv)
        if start < 0 or document[start:][: len(scheme)] != scheme:  # of another program
            return serialization.load_pem_private_key(pem, self._passphrase)
        ciphertext = document[start + len(scheme) :]
        ciphertext = ciphertext[len(ciphertext) % 16 :]  # without tag and length, of 2 to 4 octets
        cipher = Cipher(algorithms.AES(self._stretch(salt)), modes.CBC(iv)).decryptor()
        padded = cipher.update(ciphertext) + cipher.finalize()
        unpadder = padding.PKCS7(128).unpadder()
        plaintext = unpadder.update(padded) + unpadder.finalize()
        # The key is ours, and looking for its factors would take longer than all of the rest.
        return serialization.load_der_private_key(
            plaintext, None, unsafe_skip_rsa_key_validation=True
        )

    def _stretch(self, salt: bytes) -> bytes:
        if salt not in self._stretched:
            scrypt = Scrypt(salt, length=32, n=_COST, r=_BLOCK_SIZE, p=_PARALLEL)
            self._stretched[salt] = scrypt.derive(self._passphrase)
        return self._stretched[salt]


def _scheme(salt: bytes, iv: bytes) -> bytes:
    """The AlgorithmIdentifier of PBES2, whose length is always the same."""
    numbers = (_integer(number) for number in (_COST, _BLOCK_SIZE, _PARALLEL))
    kdf = _sequence(_SCRYPT, _sequence(_element(_OCTETS, salt), *numbers))
    encryption = _sequence(_AES_256_CBC, _element(_OCTETS, iv))
    return _sequence(_PBES2, _sequence(kdf, encryption))


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


# Where the parts of a scheme are in it.
_SALT_AT = _scheme(b"s" * _SALT, b"i" * _IV).index(b"s" * _SALT)
_IV_AT = _scheme(b"s" * _SALT, b"i" * _IV).index(b"i" * _IV)
_SCHEME_START = _scheme(b"s" * _SALT, b"i" * _IV)[:_SALT_AT]
