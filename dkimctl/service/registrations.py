"""Registered combinations of signing domain and selector, as stored (interface 2.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, select, tuple_

from dkimctl.service import audit
from dkimctl.service.database.schema import registrations
from dkimctl.service.database.store import Store
from dkimctl.service.keys.passphrase import require_same_passphrase


class RegistrationName(NamedTuple):
    """What identifies a registration, in lower case."""

    sign_domain: str
    selector: str


class Registration(NamedTuple):
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

    @property
    def name(self) -> RegistrationName:
        return RegistrationName(self.sign_domain, self.selector)


_COLUMNS = [registrations.c[name] for name in Registration._fields]
_ENABLE = Registration._fields.index("enable")
_NAME = tuple_(registrations.c.sign_domain, registrations.c.selector)


def add_all(store: Store, new: Mapping[Registration, bytes]) -> set[RegistrationName]:
    """Store registrations, each with its private key (PKCS #8 in PEM), all in one transaction.

    Returns the names of those that are stored now. The others are taken: the table's primary key
    decides which of several was first. Private keys are encrypted if the store does. Raises
    UsageError if the passphrase has changed.
    """
    if not new:
        return set()
    # In one order everywhere, or two transactions could wait for each other.
    ordered = sorted(new, key=lambda registration: registration.name)
    rows = [_row(store, registration, new[registration]) for registration in ordered]
    statement = store.insert_new(registrations).returning(*_NAME.clauses)
    with store.writing() as connection:
        require_same_passphrase(store, connection)
        stored = {RegistrationName(*row) for row in connection.execute(statement, rows)}
        audit.record(connection, (_event(one) for one in ordered if one.name in stored))
    return stored


def find_all(
    store: Store, names: Iterable[RegistrationName]
) -> dict[RegistrationName, Registration]:
    """Those of `names`, in lower case, that are registered, by any client."""
    wanted = list(names)
    if not wanted:
        return {}
    row = store.first(_named(type(store)), store.name_parameters(wanted))
    rows = json.loads((row and row[0]) or "[]")  # PostgreSQL has NULL if nothing was found
    for fields in rows:
        fields[_ENABLE] = bool(fields[_ENABLE])  # SQLite has no booleans
    return {found.name: found for found in map(Registration._make, rows)}


@cache  # takes SQLAlchemy longer than running it
def _named(store: type[Store]) -> Select[Any]:
    """The registrations of a table of names, as one JSON text.

    For each row, sqlite3 would give up the interpreter lock, and get it back after other threads.
    """
    names = store.table_of_names()
    is_named = (registrations.c.sign_domain == names.c.sign_domain) & (
        registrations.c.selector == names.c.selector
    )
    return select(store.json_rows(_COLUMNS)).select_from(names.join(registrations, is_named))


def _row(store: Store, registration: Registration, private_key: bytes) -> dict[str, object]:
    return registration._asdict() | {"private_key": store.seal(private_key)}


def _event(registration: Registration) -> audit.Event:
    subject = " ".join(registration.name)
    return audit.Event(registration.regist_date, registration.client_id, "register", subject)
