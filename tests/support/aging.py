"""Time that passes for a ledger and its sandbox: their dates are moved into the past.

So commands run at the real time, and servers accept what they sign.
"""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

_DATES = {
    "ledger.db": {
        "registration": ("start_date", "regist_date"),
        "history": (
            "enabled_at",
            "disabled_at",
            "published_at",
            "looked_at",
            "closed_at",
            "signed_at",
        ),
        "closed_key": ("created_at", "started_at", "closed_at", "start_date", "regist_date"),
    },
    "sandbox.db": {"registrations": ("start_date", "regist_date")},
}


def let_pass(home: Path, **delta: float) -> None:
    """Move all dates of the ledger and the sandbox back by this time."""
    for file, tables in _DATES.items():
        [path] = home.rglob(file)
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.create_function("earlier", 1, lambda text: _earlier(text, delta))
            for table, columns in tables.items():
                changes = ", ".join(f"{column} = earlier({column})" for column in columns)
                connection.execute(f"UPDATE {table} SET {changes}")


def _earlier(text: str | None, delta: dict[str, float]) -> str | None:
    if text is None:
        return None
    spec = "minutes" if len(text) == len("2027-01-01T00:00+00:00") else "seconds"
    return (datetime.fromisoformat(text) - timedelta(**delta)).isoformat(timespec=spec)
