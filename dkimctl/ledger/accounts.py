"""The accounts of a ledger. Versions before 5 had several for equivalent URLs: they are merged.

The service has one registration of a domain and selector. So where two accounts have it, the row
stays that has a DNS record, or else the later `regist_date`, or else that of the account with the
canonical URL; and what was seen of the other key, if it is another, is dropped.
"""

from __future__ import annotations

import sqlite3

from dkimctl.errors import UsageError
from dkimctl.ledger.intents import select_open_requests, update_requests
from dkimctl.ledger.registrations import select_keys

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
_COUNT_DOMAINS = """
SELECT count(DISTINCT sign_domain) FROM registration JOIN account ON account.id = account_id
WHERE base_url = ? AND client_id = ?
"""


def count_domains(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    """The number of signing domains of an account; 0 if there is no such account."""
    return int(connection.execute(_COUNT_DOMAINS, (base_url, client_id)).fetchone()[0])


def merge_equivalent_accounts(connection: sqlite3.Connection) -> None:
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
    from dkimctl.text.urls import parse_url

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
    closed = {key for key in select_keys(connection, account_id) if key[1]}
    for request in reversed(list(select_open_requests(connection, account_id))):
        specs = [spec for spec in request.specs if spec.key not in closed]
        closed.update(spec.key for spec in request.specs)
        if len(specs) < len(request.specs):
            update_requests(connection, {request.id: specs})
