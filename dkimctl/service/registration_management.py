"""What an operator does with registrations: list, enable, disable and delete them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, delete, select, update

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service import audit
from dkimctl.service.database.schema import registrations
from dkimctl.service.database.store import Store
from dkimctl.service.http.validation import Entry, validate_entry
from dkimctl.service.registrations import Registration, RegistrationName


def read_name(sign_domain: str, selector: str) -> RegistrationName:
    """The name, in lower case. Raises UsageError for what cannot be registered."""
    entry = validate_entry({"sign_domain": sign_domain, "selector": selector})
    if isinstance(entry, Entry) and entry.selector is not None:
        return RegistrationName(entry.sign_domain, entry.selector)
    raise UsageError(
        "invalid domain or selector",
        hint="write a domain such as example.com, with xn-- for other letters than those of ASCII, "
        "and a selector such as s1",
    )


def list_registrations(
    store: Store, client_id: str | None = None, sign_domain: str | None = None
) -> Iterator[Registration]:
    """All registrations, or those of a client or domain, sorted by name."""
    table = registrations.c
    query = select(*(table[name] for name in Registration._fields))
    if client_id is not None:
        query = query.where(table.client_id == client_id)
    if sign_domain is not None:
        query = query.where(table.sign_domain == sign_domain.lower().removesuffix("."))
    query = query.order_by(table.sign_domain, table.selector)
    query = query.execution_options(yield_per=1000)
    with store.snapshot() as connection, connection.execute(query) as rows:
        for row in rows:
            yield Registration(*row)


def require_registration(store: Store, name: RegistrationName) -> None:
    """Raise NegativeAnswer unless the combination is registered."""
    query = select(registrations.c.selector).where(_is(name))
    with store.reading() as connection:
        if connection.execute(query).first() is None:
            raise _unknown(name)


def set_enabled(store: Store, name: RegistrationName, is_enabled: bool) -> None:
    """Enable or disable the registration (interface 3.3). Raises NegativeAnswer if unknown."""
    with store.writing() as connection:
        change = update(registrations).where(_is(name)).values(enable=is_enabled)
        if not connection.execute(change).rowcount:
            raise _unknown(name)
        action = f"registration {'enable' if is_enabled else 'disable'}"
        audit.record(connection, [audit.operator_event(action, " ".join(name))])


def delete_registration(store: Store, name: RegistrationName) -> None:
    """Delete the registration and its key: the combination can be registered again.

    Raises NegativeAnswer if it is unknown.
    """
    with store.writing() as connection:
        if not connection.execute(delete(registrations).where(_is(name))).rowcount:
            raise _unknown(name)
        audit.record(connection, [audit.operator_event("registration delete", " ".join(name))])


def _is(name: RegistrationName) -> ColumnElement[bool]:
    table = registrations.c
    return (table.sign_domain == name.sign_domain) & (table.selector == name.selector)


def _unknown(name: RegistrationName) -> NegativeAnswer:
    return NegativeAnswer(
        f"the selector {name.selector} of {name.sign_domain} is not registered",
        hint="list what is with `dkimctl service registration list`",
    )
