"""When records were first seen in DNS."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from dkimctl.models.registration import RegistrationKey, key_of, utc_time

# As bytes: the driver fails on all rows if one that something else wrote is not valid text.
_SELECT = """
SELECT sign_domain, selector, CAST(published_at AS BLOB) FROM publication WHERE account_id = ?
"""
_ADD = "INSERT OR REPLACE INTO publication VALUES (?, ?, ?, ?)"
_END = "DELETE FROM publication WHERE account_id = ? AND sign_domain = ? AND selector = ?"


def select_publications(
    connection: sqlite3.Connection, account_id: int
) -> dict[RegistrationKey, datetime]:
    """When each record of an account was first seen (UTC), without those of an invalid time."""
    publications: dict[RegistrationKey, datetime] = {}
    for sign_domain, selector, published_at in connection.execute(_SELECT, (account_id,)):
        text = published_at and published_at.decode("ascii", "backslashreplace")
        if (time := utc_time(text)) is not None:
            publications[key_of(str(sign_domain), str(selector))] = time
    return publications


def add_publications(
    connection: sqlite3.Connection,
    account_id: int,
    published_at: str,
    keys: Iterable[RegistrationKey],
) -> None:
    """Add new publications, within the caller's transaction; known ones keep their time."""
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
    """Delete the publications of `keys`, within the caller's transaction."""
    rows = [(account_id, key.sign_domain, key.selector) for key in keys]
    connection.executemany(_END, rows)
