"""Registered combinations of signing domain and selector, as stored (interface 2.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.exc import IntegrityError

from dkimctl.service.database.schema import registrations
from dkimctl.service.database.store import Store
from dkimctl.service.keys.passphrase import require_same_passphrase


class RegistrationName(NamedTuple):
    """What identifies a registration, in lower case."""

    sign_domain: str
    selector: str


@dataclass(frozen=True, slots=True)
class Registration:
    """One registration. Names are in lower case; `value` is the TXT value to publish.

    `start_date` is ISO 8601 with offset to the minute, `regist_date` to the second.
    """

    client_id: str
    sign_domain: str
    selector: str
    key_len: int
    start_date: str
    default: int
    enable: bool
    value: str
    regist_date: str


def add(store: Store, registration: Registration, private_key: bytes) -> bool:
    """Store a registration with its private key (PKCS #8 in PEM), encrypted if the store does.

    False, and nothing is stored, if the combination is taken: the table's primary key decides
    which of several was first. Raises UsageError if the file's passphrase has changed.
    """
    if store.encryptor is not None:
        private_key = store.encryptor.encrypt(private_key)
    try:
        with store.writing() as connection:
            require_same_passphrase(connection, store.path, store.marker)
            row = {**asdict(registration), "private_key": private_key}
            connection.execute(insert(registrations).values(row))
    except IntegrityError:
        return False
    return True


def find(store: Store, sign_domain: str, selector: str) -> Registration:
    """The registration of this combination, of any client; names in lower case.

    Raises sqlalchemy.exc.NoResultFound if the combination is not registered.
    """
    columns = [registrations.c[name] for name in Registration.__dataclass_fields__]
    with store.reading() as connection:
        row = connection.execute(select(*columns).where(_is(sign_domain, selector))).one()
    return Registration(**row._mapping)


def registered(store: Store, names: Iterable[RegistrationName]) -> set[RegistrationName]:
    """Those of `names` that are registered."""
    with store.reading() as connection:
        return {
            name
            for name in names
            if connection.execute(select(registrations.c.selector).where(_is(*name))).first()
        }


def _is(sign_domain: str, selector: str) -> ColumnElement[bool]:
    return (registrations.c.sign_domain == sign_domain) & (registrations.c.selector == selector)
