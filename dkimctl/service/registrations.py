"""Registered combinations of signing domain and selector, as stored (interface 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, insert, select
from sqlalchemy.exc import IntegrityError

from dkimctl.errors import NegativeAnswer
from dkimctl.service.passphrase import opened, require_unchanged
from dkimctl.service.schema import registrations
from dkimctl.service.store import Store


@dataclass(frozen=True, slots=True)
class Registration:
    """One registration. Names are in lower case, `value` is the TXT value to publish.

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
    """Store a registration with its private key (PKCS #8 PEM).

    False, and nothing stored, if the combination is taken: the primary key of the table
    decides who of several was first. Raises UsageError where the file's keys are sealed otherwise
    than the store would seal this one.
    """
    kept = private_key if store.sealer is None else store.sealer.seal(private_key)
    try:
        with store.writing() as connection:
            require_unchanged(connection, store.path, store.marker)
            row = {**asdict(registration), "private_key": kept}
            connection.execute(insert(registrations).values(row))
    except IntegrityError:
        return False
    return True


def find(store: Store, sign_domain: str, selector: str) -> Registration:
    """The registration of this combination, whosever it is; names in lower case.

    Raises NegativeAnswer if the combination is not registered.
    """
    columns = [registrations.c[name] for name in Registration.__dataclass_fields__]
    row = _one_row(store, columns, sign_domain, selector)
    return Registration(**row._mapping)


def taken(store: Store, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those (signing domain, selector) pairs, in lower case, that are registered."""
    with store.reading() as connection:
        return {
            pair
            for pair in pairs
            if connection.execute(select(registrations.c.selector).where(_is(*pair))).first()
        }


def private_key(store: Store, sign_domain: str, selector: str) -> bytes:
    """The private key (PKCS #8 PEM) of a registration; names in any case.

    Raises NegativeAnswer if the combination is not registered, UsageError where the key is sealed
    and the store has no sealer, or one with another passphrase.
    """
    columns = [registrations.c.private_key]
    (pem,) = _one_row(store, columns, sign_domain.lower(), selector.lower())
    return opened(store.path, store.sealer, bytes(pem))


def _one_row(
    store: Store, columns: Sequence[Column[Any]], sign_domain: str, selector: str
) -> Row[Any]:
    with store.reading() as connection:
        row = connection.execute(select(*columns).where(_is(sign_domain, selector))).first()
    if row is None:
        raise NegativeAnswer(
            f"selector {selector!r} of {sign_domain!r} is not registered with this service",
            hint="check the two names, or register them first",
        )
    return row


def _is(sign_domain: str, selector: str) -> ColumnElement[bool]:
    return (registrations.c.sign_domain == sign_domain) & (registrations.c.selector == selector)
