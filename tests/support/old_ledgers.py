"""Ledgers as older versions of dkimctl have left them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path


def make_version_4(path: Path) -> None:
    """Give a ledger the version that kept accounts with equivalent URLs apart."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TABLE closed_key; DROP TABLE alarm; DROP TABLE event; "
            "DROP TABLE report; DROP TABLE mail; "
            "ALTER TABLE history DROP COLUMN closed_at; ALTER TABLE history DROP COLUMN signed_at; "
            "ALTER TABLE open_request RENAME TO sending; PRAGMA user_version = 4"
        )
