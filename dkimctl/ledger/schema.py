"""The tables of the ledger, and how a file of an older version comes by them.

`PRAGMA user_version` holds the version: 0 is a file without tables, 1 had no sendings, 2 no
publications.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dkimctl.errors import LedgerError

_REGISTRATIONS = """
CREATE {kind} TABLE account (
  id INTEGER PRIMARY KEY,
  base_url TEXT NOT NULL,
  client_id TEXT NOT NULL,
  UNIQUE (base_url, client_id)
);
CREATE {kind} TABLE registration (
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  key_len INTEGER,
  start_date TEXT,
  "default" INTEGER,
  enable INTEGER,
  fqdn TEXT,
  type TEXT,
  value TEXT,
  regist_date TEXT,
  code TEXT,
  message TEXT,
  UNIQUE (account_id, sign_domain, selector)
);
"""
# `entries`: JSON, a list of [signing domain, selector or null where the service is to choose].
_SENDINGS = """
CREATE {kind} TABLE sending (
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account (id),
  sent_at TEXT NOT NULL,
  entries TEXT NOT NULL
)
"""
# `published_at`: when the record was first seen in DNS, as `utc` writes it.
_PUBLICATIONS = """
CREATE {kind} TABLE publication (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  published_at TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector)
)
"""
# What makes each version of the one before it.
_STEPS = (_REGISTRATIONS, _SENDINGS, _PUBLICATIONS)
_VERSION = len(_STEPS)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the present version, within the caller's transaction.

    Raises LedgerError for a version that is newer than this program.
    """
    version = version_of(connection, path)
    if version < _VERSION:
        _build(connection, version, kind="")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def complete(connection: sqlite3.Connection, path: Path) -> None:
    """Give a reader, for itself alone, the tables that an older file lacks.

    Raises LedgerError for a version that is newer than this program.
    """
    version = version_of(connection, path)
    if version < _VERSION:
        connection.execute("PRAGMA temp_store = MEMORY")
        _build(connection, version, kind="TEMP")


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version. Raises LedgerError where it is newer than this program."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise LedgerError(
            f"the ledger {path} was written by a newer dkimctl",
            hint="upgrade dkimctl, or name another state directory in DKIMCTL_STATE_DIR",
        )
    return version


def _build(connection: sqlite3.Connection, version: int, *, kind: str) -> None:
    for step in _STEPS[version:]:
        for statement in step.format(kind=kind).split(";"):
            connection.execute(statement)
