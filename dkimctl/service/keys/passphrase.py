"""One passphrase for all private keys of a service: the first one its data is opened with."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Table,
    bindparam,
    func,
    insert,
    select,
    tuple_,
    update,
)

from dkimctl.errors import UsageError
from dkimctl.service.database.schema import key_pool, passphrases, registrations
from dkimctl.service.database.store import Store
from dkimctl.service.keys.encryption import ENCRYPTED_HEADER, PrivateKeyEncryptor, WrongPassphrase

_AT_ONCE = 1000  # keys in memory


def adopt_passphrase(store: Store, connection: Connection, encryptor: PrivateKeyEncryptor) -> bytes:
    """The data's marker, created if there is none; encrypts every key that is not encrypted.

    `connection` must be a writing one, so that one of several processes decides. Raises
    UsageError if the marker, or a key older than it, is encrypted with another passphrase.
    """
    store.lock(connection, passphrases)
    marker = _marker(connection)
    if marker is not None:
        _require_decryptable(store, encryptor, marker)
    else:
        key = registrations.c.private_key
        for pem in connection.scalars(select(key).where(_is_encrypted(registrations))).all():
            _require_decryptable(store, encryptor, pem)
        marker = encryptor.encrypt(_unused_key())
        connection.execute(insert(passphrases).values(marker=marker))
    _encrypt_all(connection, encryptor, registrations)
    _encrypt_all(connection, encryptor, key_pool)
    return marker


def require_no_passphrase(store: Store, connection: Connection) -> None:
    """Raise UsageError if the data has a passphrase, or encrypted keys."""
    any_encrypted = select(registrations.c.selector).where(_is_encrypted(registrations)).limit(1)
    if _marker(connection) is not None or connection.execute(any_encrypted).first():
        raise UsageError(
            f"the private keys in {store.name} are encrypted with a passphrase",
            hint="set DKIMCTL_SERVICE_PASSPHRASE to it",
        )


def require_same_passphrase(store: Store, connection: Connection) -> None:
    """Raise UsageError unless the data still has the marker it had when it was opened.

    Otherwise a key added now would be plain, or encrypted with another passphrase.
    """
    if _marker(connection) != store.marker:
        raise UsageError(
            f"the passphrase of the private keys in {store.name} has changed since it was opened",
            hint="stop, set DKIMCTL_SERVICE_PASSPHRASE to the new passphrase, and start again",
        )


def _marker(connection: Connection) -> bytes | None:
    return connection.execute(select(passphrases.c.marker)).scalar_one_or_none()


def _require_decryptable(store: Store, encryptor: PrivateKeyEncryptor, pem: bytes) -> None:
    try:
        encryptor.decrypt(pem)
    except WrongPassphrase:
        raise UsageError(
            f"the private keys in {store.name} are encrypted with another passphrase",
            hint="set DKIMCTL_SERVICE_PASSPHRASE to the passphrase they were encrypted with",
        ) from None


def _encrypt_all(connection: Connection, encryptor: PrivateKeyEncryptor, table: Table) -> None:
    identity = list(table.primary_key)
    plain = select(*identity, table.c.private_key).where(~_is_encrypted(table))
    some = plain.order_by(*identity).limit(_AT_ONCE)
    encrypt = (
        update(table)
        .where(*(column == bindparam(f"of_{column.name}") for column in identity))
        .values(private_key=bindparam("encrypted"))
    )
    rows = connection.execute(some).all()
    while rows:
        connection.execute(
            encrypt,
            [
                {f"of_{column.name}": row._mapping[column] for column in identity}
                | {"encrypted": encryptor.encrypt(row.private_key)}
                for row in rows
            ],
        )
        after = tuple_(*identity) > tuple_(*(rows[-1]._mapping[column] for column in identity))
        rows = connection.execute(some.where(after)).all()


def _is_encrypted(table: Table) -> ColumnElement[bool]:
    length = len(ENCRYPTED_HEADER)
    header = func.substr(table.c.private_key, 1, length, type_=LargeBinary)
    return header == ENCRYPTED_HEADER


def _unused_key() -> bytes:
    """A key for the marker, of the kind that is quickest to make."""
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
