"""Since when records are seen in DNS."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime

from dkimctl.models.registration import RegistrationKey, key_of

# As bytes: a text that is none, put there by somebody else, makes the driver give up on all rows.
_SELECT = """
SELECT sign_domain, selector, CAST(published_at AS BLOB) FROM publication WHERE account_id = ?
"""
_ADD = "INSERT OR REPLACE INTO publication VALUES (?, ?, ?, ?)"
_END = "DELETE FROM publication WHERE account_id = ? AND sign_domain = ? AND selector = ?"


def select_publications(
    connection: sqlite3.Connection, account_id: int
) -> dict[RegistrationKey, datetime]:
    """When each record of an account was first seen (UTC), by its key.

    One whose time cannot be read is left out.
    """
    found: dict[RegistrationKey, datetime] = {}
    for sign_domain, selector, published_at in connection.execute(_SELECT, (account_id,)):
        time = _time(published_at)
        if time is not None:
            found[key_of(str(sign_domain), str(selector))] = time
    return found


def add_publications(
    connection: sqlite3.Connection,
    account_id: int,
    published_at: str,
    keys: Iterable[RegistrationKey],
) -> None:
    """Add those that are not there, within the caller's transaction; the others keep their time."""
    known = select_publications(connection, account_id)
    rows = [
        (account_id, key.sign_domain, key.selector, published_at)
        for key in keys
        if key not in known
    ]
    connection.executemany(_ADD, rows)


def end_publications(
    connection: sqlite3.Connection, account_id: int, keys: Iterable[RegistrationKey]
) -> None:
    """Delete those of `keys`, within the caller's transaction."""
    rows = [(account_id, key.sign_domain, key.selector) for key in keys]
    connection.executemany(_END, rows)


def _time(written: object) -> datetime | None:
    """The time of a row, unless it is none, whatever somebody else may have put there."""
    if not isinstance(written, bytes):
        return None
    try:
        found = datetime.fromisoformat(written.decode("ascii"))
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):  # no time, or none in UTC
        return None
