"""The audit log: what operators did and what was registered, by whom and when; never a secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, insert

from dkimctl.service.database.schema import audit


class Event(NamedTuple):
    """`at` is ISO 8601 in UTC, to the second; `actor` a client ID, or an operator."""

    at: str
    actor: str
    action: str
    subject: str


def record(connection: Connection, events: Iterable[Event]) -> None:
    """Add events within the caller's transaction, so that they are there if it had an effect."""
    if rows := [event._asdict() for event in events]:
        connection.execute(insert(audit), rows)
