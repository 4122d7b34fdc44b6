"""One passphrase for all private keys of a data file: the first one it is opened with."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import ColumnElement, Connection, LargeBinary, func, insert, select, update

from dkimctl.errors import UsageError
from dkimctl.service.database.schema import passphrases, registrations
from dkimctl.service.keys.encryption import ENCRYPTED_HEADER, PrivateKeyEncryptor, WrongPassphrase

_KEY = registrations.c.private_key


def adopt_passphrase(connection: Connection, path: Path, encryptor: PrivateKeyEncryptor) -> bytes:
    """The file's marker, created if there is none; encrypts every key that is not encrypted.

    `connection` must be a writing one, so that one of several processes decides. Raises
    UsageError if the marker, or a key older than it, is encrypted with another passphrase.
    """
    marker = _marker(connection)
    if marker is not None:
        _require_decryptable(path, encryptor, marker)
    else:
        for pem in connection.scalars(select(_KEY).where(_is_encrypted())).all():
            _require_decryptable(path, encryptor, pem)
        marker = encryptor.encrypt(_unused_key())
        connection.execute(insert(passphrases).values(marker=marker))
    _encrypt_all(connection, encryptor)
    return marker


def require_no_passphrase(connection: Connection, path: Path) -> None:
    """Raise UsageError if the file has a passphrase, or encrypted keys."""
    any_encrypted = select(_KEY).where(_is_encrypted()).limit(1)
    if _marker(connection) is not None or connection.execute(any_encrypted).first():
        raise UsageError(
            f"the private keys in {path} are encrypted with a passphrase",
            hint="set DKIMCTL_SERVICE_PASSPHRASE to it",
        )


def require_same_passphrase(connection: Connection, path: Path, marker: bytes | None) -> None:
    """Raise UsageError unless the file still has the marker it had when it was opened.

    Otherwise a key added now would be plain, or encrypted with another passphrase.
    """
    if _marker(connection) != marker:
        raise UsageError(
            f"the passphrase of the private keys in {path} has changed since it was opened",
            hint="stop, set DKIMCTL_SERVICE_PASSPHRASE to the new passphrase, and start again",
        )


def _marker(connection: Connection) -> bytes | None:
    return connection.execute(select(passphrases.c.marker)).scalar_one_or_none()


def _require_decryptable(path: Path, encryptor: PrivateKeyEncryptor, pem: bytes) -> None:
    try:
        encryptor.decrypt(pem)
    except WrongPassphrase:
        raise UsageError(
            f"the private keys in {path} are encrypted with another passphrase",
            hint="set DKIMCTL_SERVICE_PASSPHRASE to the passphrase they were encrypted with",
        ) from None


def _encrypt_all(connection: Connection, encryptor: PrivateKeyEncryptor) -> None:
    table = registrations.c
    plain = select(table.sign_domain, table.selector, _KEY).where(~_is_encrypted())
    for row in connection.execute(plain).all():
        is_row = (table.sign_domain == row.sign_domain) & (table.selector == row.selector)
        encrypted = encryptor.encrypt(row.private_key)
        connection.execute(update(registrations).where(is_row).values(private_key=encrypted))


def _is_encrypted() -> ColumnElement[bool]:
    header = func.substr(_KEY, 1, len(ENCRYPTED_HEADER), type_=LargeBinary)
    return header == ENCRYPTED_HEADER


def _unused_key() -> bytes:
    """A key for the marker, of the kind that is quickest to make."""
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
