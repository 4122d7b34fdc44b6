"""The migration of ledgers of older versions.

Versions before 5 had several accounts for equivalent URLs: they are merged. The service has one
registration of a domain and selector. So where two accounts have it, the row stays that has a DNS
record, or else the later `regist_date`, or else that of the account with the canonical URL; and
what was seen of the other key, if it is another, is dropped.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dkimctl.errors import LedgerError, UsageError
from dkimctl.ledger.intents import select_open_requests, update_requests
from dkimctl.ledger.tables import STEPS
from dkimctl.text.urls import parse_url

_VERSION = len(STEPS)


# ?1 and ?2 are the account that goes and the one that stays.
_SUPERSEDED = """
SELECT
  iif(
    (gone.value IS NOT NULL, coalesce(julianday(gone.regist_date), 0))
    > (kept.value IS NOT NULL, coalesce(julianday(kept.regist_date), 0)),
    kept.account_id, gone.account_id),
  sign_domain, selector, gone.value IS kept.value
FROM registration AS gone JOIN registration AS kept USING (sign_domain, selector)
WHERE gone.account_id = ?1 AND kept.account_id = ?2
"""
_CLEAR_HISTORY = """
UPDATE history SET
  enabled_at = NULL, disabled_at = NULL,
  published_at = iif(?4, published_at, NULL),
  looked_at = iif(?4, looked_at, NULL),
  verdict = iif(?4, verdict, NULL)
WHERE account_id = ?1 AND sign_domain = ?2 AND selector = ?3
"""
_DELETE_REGISTRATION = """
DELETE FROM registration WHERE account_id = ?1 AND sign_domain = ?2 AND selector = ?3
"""
# The later look counts. A record has been published without a break since the account that looked
# first last saw it appear, or last looked without seeing it.
_MERGE_HISTORIES = """
INSERT INTO history
  SELECT ?2, sign_domain, selector, enabled_at, disabled_at, replaces, published_at, looked_at,
    verdict
  FROM history WHERE account_id = ?1
ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET
  enabled_at = coalesce(enabled_at, excluded.enabled_at),
  disabled_at = coalesce(disabled_at, excluded.disabled_at),
  replaces = coalesce(replaces, excluded.replaces),
  published_at = iif(
    excluded.looked_at > coalesce(looked_at, ''),
    max(excluded.published_at, coalesce(published_at, looked_at, excluded.published_at)),
    max(published_at, coalesce(excluded.published_at, excluded.looked_at, published_at))),
  looked_at = iif(
    excluded.looked_at > coalesce(looked_at, ''), excluded.looked_at, looked_at),
  verdict = iif(excluded.looked_at > coalesce(looked_at, ''), excluded.verdict, verdict)
"""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file to the current version, within the caller's transaction.

    Raises LedgerError if the file's version is newer than this program.
    """
    version = version_of(connection, path)
    if version < _VERSION:
        for step in STEPS[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        if version < 5:  # since this version
            _merge_equivalent_accounts(connection)
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


def _merge_equivalent_accounts(connection: sqlite3.Connection) -> None:
    """Make every account's URL canonical, within the caller's transaction."""
    accounts = "SELECT id, base_url, client_id FROM account ORDER BY id"
    for account_id, base_url, client_id in connection.execute(accounts).fetchall():
        url = _canonical(base_url)
        if url == base_url:
            continue
        target = connection.execute(
            "SELECT id FROM account WHERE base_url = ? AND client_id = ?", (url, client_id)
        ).fetchone()
        if target is None:
            connection.execute("UPDATE account SET base_url = ? WHERE id = ?", (url, account_id))
        else:
            _merge(connection, account_id, target[0])


def _canonical(base_url: object) -> object:
    """The canonical URL; anything else as it is."""
    try:
        return str(parse_url(base_url)) if isinstance(base_url, str) else base_url
    except UsageError:
        return base_url


def _merge(connection: sqlite3.Connection, gone: int, kept: int) -> None:
    """Give all that the account `gone` has to the account `kept`."""
    superseded = connection.execute(_SUPERSEDED, (gone, kept)).fetchall()
    connection.executemany(_CLEAR_HISTORY, superseded)
    connection.executemany(_DELETE_REGISTRATION, (row[:3] for row in superseded))
    connection.execute(_MERGE_HISTORIES, (gone, kept))
    connection.execute("DELETE FROM history WHERE account_id = ?", (gone,))
    connection.execute("UPDATE registration SET account_id = ? WHERE account_id = ?", (kept, gone))
    connection.execute("UPDATE open_request SET account_id = ? WHERE account_id = ?", (kept, gone))
    _close_repeated_intents(connection, kept)
    connection.execute("DELETE FROM account WHERE id = ?", (gone,))


def _close_repeated_intents(connection: sqlite3.Connection, account_id: int) -> None:
    """Close intents whose key is registered, or in a newer request."""
    query = "SELECT lower(sign_domain), lower(selector) FROM registration WHERE account_id = ?"
    closed = {key for key in connection.execute(query, (account_id,)) if key[1]}
    for request in reversed(list(select_open_requests(connection, account_id))):
        specs = [spec for spec in request.specs if spec.key not in closed]
        closed.update(spec.key for spec in request.specs)
        if len(specs) < len(request.specs):
            update_requests(connection, {request.id: specs})
