"""Alarms as rows of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from dkimctl.ledger.columns import text_of, time_of, written
from dkimctl.models.alarm import Alarm

_SELECT = """
SELECT CAST(subject AS BLOB), CAST(problem AS BLOB), CAST(first_seen AS BLOB),
  CAST(looked_at AS BLOB), CAST(told_at AS BLOB)
FROM alarm WHERE account_id = ? ORDER BY subject, problem
"""
_INSERT = "INSERT OR REPLACE INTO alarm VALUES (?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM alarm WHERE account_id = ? AND subject = ? AND problem = ?"


def select_alarms(connection: sqlite3.Connection, account_id: int) -> Iterator[Alarm]:
    """The alarms of an account, by subject and problem, without those whose times are invalid."""
    for subject, problem, *columns in connection.execute(_SELECT, (account_id,)):
        first_seen, looked_at, told_at = map(time_of, columns)
        if first_seen is not None and looked_at is not None:
            text = text_of(subject) or "", text_of(problem) or ""
            yield Alarm(*text, first_seen, looked_at, told_at)


def replace_alarms(
    connection: sqlite3.Connection, account_id: int, old: Iterable[Alarm], new: Iterable[Alarm]
) -> None:
    """Delete the rows of `old`, then add those of `new`, within the caller's transaction."""
    connection.executemany(_DELETE, ((account_id, *alarm[:2]) for alarm in old))
    rows = ((account_id, *alarm[:2], *map(written, alarm[2:])) for alarm in new)
    connection.executemany(_INSERT, rows)
