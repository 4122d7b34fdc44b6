"""The audit log: what operators did and what was registered, by whom and when; never a secret."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from dkimctl.service.database.schema import audit
from dkimctl.service.database.store import Store
from dkimctl.text.escaping import printable

_AT_ONCE = 1000  # rows in a transaction


class Event(NamedTuple):
    """`at` is ISO 8601 in UTC, to the second; `actor` a client ID, or `operator:USER@HOST`.

    A client ID has no colon (RFC 7617, section 2), so no client can pass for an operator.
    """

    at: str
    actor: str
    action: str
    subject: str


def operator_event(action: str, subject: str) -> Event:
    """What the operating system's user does now, such as `client disable` to a client ID."""
    actor = f"operator:{_user()}@{socket.gethostname()}"
    return Event(_to_second(datetime.now(UTC)), actor, action, printable(subject))


def record(connection: Connection, events: Iterable[Event]) -> None:
    """Add events within the caller's transaction, so that they are there if it had an effect."""
    if rows := [event._asdict() for event in events]:
        connection.execute(insert(audit), rows)


def read_events(store: Store, since: datetime | None = None) -> Iterator[Event]:
    """The events, in the order in which they were recorded; those from `since` on.

    No transaction stays open while the caller handles them.
    """
    columns = [audit.c[name] for name in Event._fields]
    query = select(audit.c.audit_id, *columns).order_by(audit.c.audit_id).limit(_AT_ONCE)
    if since is not None:
        query = query.where(audit.c.at >= _to_second(since))
    last = 0
    while True:
        with store.reading() as connection:
            rows = connection.execute(query.where(audit.c.audit_id > last)).all()
        if not rows:
            return
        for audit_id, *fields in rows:
            yield Event(*fields)
            last = audit_id


def purge_events(store: Store, before: datetime) -> int:
    """Delete the events before that time, and record that; returns their number."""
    before = min(before, datetime.now(UTC))  # keeps the record
    old = select(audit.c.audit_id).where(audit.c.at < _to_second(before))
    some = delete(audit).where(audit.c.audit_id.in_(old.limit(_AT_ONCE)))
    with store.writing() as connection:
        record(connection, [operator_event("audit purge", f"before {_to_second(before)}")])
    purged = 0
    while True:  # in small transactions, beside which the service goes on
        with store.writing() as connection:
            deleted = connection.execute(some).rowcount
        purged += deleted
        if not deleted:
            return purged


def _to_second(moment: datetime) -> str:
    """As in the table, where moments are compared as text."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _user() -> str:
    """The name of the user that runs this process."""
    if sys.platform == "win32":
        return getpass.getuser()
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name  # getpass believes the environment
    except KeyError:  # such as in a container
        return str(os.geteuid())
