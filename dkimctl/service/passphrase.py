"""One passphrase for all private keys of a data file: that of whoever gives one first."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import ColumnElement, Connection, LargeBinary, func, insert, select, update

from dkimctl.errors import UsageError
from dkimctl.service.encryption import HEAD, PrivateKeyEncryptor, WrongPassphrase, is_sealed
from dkimctl.service.schema import passphrases, registrations

_KEY = registrations.c.private_key


def agree(connection: Connection, path: Path, sealer: PrivateKeyEncryptor) -> bytes:
    """The file's marker, made if there is none. Seals every key that is not sealed.

    `connection` must be one that writes, so that of several who come at once one decides. Raises
    UsageError where the marker, or a key older than it, is sealed with another passphrase.
    """
    marker = _marker(connection)
    if marker is not None:
        opened(path, sealer, marker)
    else:
        for pem in connection.scalars(select(_KEY).where(_is_sealed())).all():
            opened(path, sealer, pem)
        marker = sealer.seal(_unused_key())
        connection.execute(insert(passphrases).values(marker=marker))
    _seal_all(connection, sealer)
    return marker


def require_none(connection: Connection, path: Path) -> None:
    """Raises UsageError if keys of the file are sealed, or are to be."""
    any_sealed = select(_KEY).where(_is_sealed()).limit(1)
    if _marker(connection) is not None or connection.execute(any_sealed).first():
        raise _sealed(path)


def require_unchanged(connection: Connection, path: Path, marker: bytes | None) -> None:
    """See that the file still has the marker that it had when it was opened.

    Raises UsageError: a key that is added now would not be sealed, or with another passphrase.
    """
    if _marker(connection) != marker:
        raise UsageError(
            f"the private keys in {path} were since sealed with a passphrase that is not ours",
            hint="stop, set DKIMCTL_SERVICE_PASSPHRASE to it, and start again",
        )


def opened(path: Path, sealer: PrivateKeyEncryptor | None, pem: bytes) -> bytes:
    """A private key of the file, in PEM, without its seal.

    Raises UsageError where it is sealed, and with another passphrase, or no sealer is given.
    """
    if not is_sealed(pem):
        return pem
    if sealer is None:
        raise _sealed(path)
    try:
        return sealer.open(pem)
    except WrongPassphrase:
        raise UsageError(
            f"the private keys in {path} are sealed with another passphrase",
            hint="set DKIMCTL_SERVICE_PASSPHRASE to the one that they were made with",
        ) from None


def _marker(connection: Connection) -> bytes | None:
    return connection.execute(select(passphrases.c.marker)).scalar_one_or_none()


def _seal_all(connection: Connection, sealer: PrivateKeyEncryptor) -> None:
    table = registrations.c
    rows = connection.execute(select(table.sign_domain, table.selector, _KEY).where(~_is_sealed()))
    for sign_domain, selector, pem in rows.all():
        this = (table.sign_domain == sign_domain) & (table.selector == selector)
        sealed = sealer.seal(pem)
        connection.execute(update(registrations).where(this).values(private_key=sealed))


def _is_sealed() -> ColumnElement[bool]:
    return func.substr(_KEY, 1, len(HEAD), type_=LargeBinary) == HEAD


def _unused_key() -> bytes:
    """Something to seal that a sealer opens: a key that nobody uses, the quickest to make."""
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _sealed(path: Path) -> UsageError:
    return UsageError(
        f"the private keys in {path} are sealed with a passphrase",
        hint="set DKIMCTL_SERVICE_PASSPHRASE to it",
    )
