"""The tables of the ledger, and the migration of files of older versions.

`PRAGMA user_version` holds the version: 0 is a file without tables, 1 has no table for open
requests, 2 none for publications, 3 no `history`, which has replaced that. 4 may have several
accounts whose URLs are equivalent. 5 has no tables for closed keys and alarms.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.ledger.accounts import merge_equivalent_accounts

_REGISTRATIONS = """
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  base_url TEXT NOT NULL,
  client_id TEXT NOT NULL,
  UNIQUE (base_url, client_id)
);
CREATE TABLE registration (
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
# `entries`: JSON, a list of [signing domain, selector]; null lets the service choose the selector.
_SENDINGS = """
CREATE TABLE sending (
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account (id),
  sent_at TEXT NOT NULL,
  entries TEXT NOT NULL
)
"""
# Of version 3 alone. `published_at`: when the record was first seen in DNS.
_PUBLICATIONS = """
CREATE TABLE publication (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  published_at TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector)
)
"""
# See KeyHistory, and histories.py for keys without a row; times: YYYY-MM-DDThh:mm:ss+00:00. Where
# version 3 does not tell since when a key is enabled or disabled, it is since the migration. Since
# when a record is published it does not tell: any server counted, and the first sighting alone.
_HISTORIES = """
CREATE TABLE history (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  enabled_at TEXT,
  disabled_at TEXT,
  replaces TEXT,
  published_at TEXT,
  looked_at TEXT,
  verdict TEXT,
  PRIMARY KEY (account_id, sign_domain, selector)
);
INSERT INTO history
  WITH known AS (
    SELECT *, strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now') AS now,
      (code IS '201' AND regist_date GLOB '[0-9]*-[0-9]*T[0-9]*:[0-9]*[-+Z]*') IS TRUE AS is_told
    FROM registration LEFT JOIN publication USING (account_id, sign_domain, selector)
  )
  SELECT account_id, sign_domain, selector,
    iif(is_told OR enable IS 0, NULL, now), iif(NOT is_told AND enable IS 0, now, NULL),
    NULL, NULL, published_at, iif(published_at IS NULL, NULL, 'published')
  FROM known WHERE NOT is_told OR published_at IS NOT NULL;
DROP TABLE publication
"""
# With the old name, a run of version 4 that goes on would add answers to an account that is gone.
_OPEN_REQUESTS = "ALTER TABLE sending RENAME TO open_request"
# See ClosedKey and Alarm; times as in `history`.
_CLOSED_KEYS = """
CREATE TABLE closed_key (
  account_id INTEGER NOT NULL REFERENCES account (id),
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE,
  "default" INTEGER,
  created_at TEXT,
  started_at TEXT,
  replaced_by TEXT,
  closed_at TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector)
);
CREATE TABLE alarm (
  account_id INTEGER NOT NULL REFERENCES account (id),
  subject TEXT NOT NULL,
  problem TEXT NOT NULL,
  first_seen TEXT NOT NULL,
  looked_at TEXT NOT NULL,
  told_at TEXT,
  PRIMARY KEY (account_id, subject, problem)
)
"""
# Each step upgrades a file by one version.
_STEPS = (_REGISTRATIONS, _SENDINGS, _PUBLICATIONS, _HISTORIES, _OPEN_REQUESTS, _CLOSED_KEYS)
_VERSION = len(_STEPS)
_CANONICAL_URLS = 5  # since this version


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file to the current version, within the caller's transaction.

    Raises LedgerError if the file's version is newer than this program.
    """
    version = version_of(connection, path)
    if version < _VERSION:
        for step in _STEPS[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        if version < _CANONICAL_URLS:
            merge_equivalent_accounts(connection)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def migrated_copy(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """The connection itself; for a file of an older version, one to a migrated copy in memory.

    Raises LedgerError if the file's version is newer than this program.
    """
    if version_of(connection, path) == _VERSION:
        return connection
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.backup(copy)
        migrate(copy, path)
    except BaseException:
        copy.close()
        raise
    connection.close()
    return copy


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version. Raises LedgerError if it is newer than this program."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise LedgerError(
            f"the ledger {path} was written by a newer dkimctl",
            hint="upgrade dkimctl, or set DKIMCTL_STATE_DIR to another directory",
        )
    return version
