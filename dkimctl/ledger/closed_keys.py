"""Closed keys as rows of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from dkimctl.ledger.columns import text_of, time_of, written
from dkimctl.ledger.histories import select_history
from dkimctl.models.closed_key import ClosedKey
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration

_SELECT = """
SELECT CAST(sign_domain AS BLOB), CAST(selector AS BLOB),
  iif(typeof("default") IS 'integer', "default", 0), CAST(created_at AS BLOB),
  CAST(started_at AS BLOB), CAST(replaced_by AS BLOB), CAST(closed_at AS BLOB)
FROM closed_key WHERE account_id = ? ORDER BY sign_domain, selector
"""
_INSERT = "INSERT OR REPLACE INTO closed_key VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM closed_key WHERE account_id = ? AND sign_domain = ? AND selector = ?"
_ANY = "SELECT EXISTS (SELECT * FROM closed_key WHERE account_id = ?)"


def select_closed_keys(connection: sqlite3.Connection, account_id: int) -> Iterator[ClosedKey]:
    """The closed keys of an account, sorted by signing domain and selector."""
    for row in connection.execute(_SELECT, (account_id,)):
        domain, selector, default, created, started, replaced_by, closed = row
        yield ClosedKey(
            text_of(domain) or "",
            text_of(selector) or "",
            default,
            time_of(created),
            time_of(started),
            text_of(replaced_by),
            time_of(closed),
        )


def insert_closed_keys(
    connection: sqlite3.Connection,
    account_id: int,
    now: str,
    replaced: Mapping[Registration, str | None],
) -> None:
    """Add keys with what replaced them, within the caller's transaction.

    Call it before their registrations and histories are deleted.
    """
    for one, successor in replaced.items():
        history = select_history(connection, account_id, *one[:2]) or KeyHistory()
        started_at = one.starts_at
        if started_at is not None and history.enabled_at is not None:
            started_at = max(started_at, history.enabled_at)
        dates = (written(one.created_at), written(started_at))
        row = (account_id, one.sign_domain, one.selector or "", one.third_party, *dates)
        connection.execute(_INSERT, (*row, successor, now))


def delete_closed_keys(
    connection: sqlite3.Connection, account_id: int, answers: Iterable[Registration]
) -> None:
    """Delete the entries of keys that are registered again, within the caller's transaction."""
    if connection.execute(_ANY, (account_id,)).fetchone()[0]:
        names = ((account_id, one.sign_domain, one.selector or "") for one in answers)
        connection.executemany(_DELETE, names)
