"""The history of keys, as rows of the ledger.

Most keys need no row: one that was registered (201), and of which nothing else is known, has been
enabled or disabled since its `regist_date`. A row that states neither time changes nothing in that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from dkimctl.ledger.columns import text_of, time_of, written
from dkimctl.ledger.registrations import IS_OURS
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration, RegistrationKey, key_of, utc_time

_SKEW = timedelta(days=1)  # a clock may differ so much from that of the service
_SELECT = """
SELECT sign_domain, selector, code IS '201', enable IS 0, CAST(regist_date AS BLOB),
  CAST(enabled_at AS BLOB), CAST(disabled_at AS BLOB), CAST(replaces AS BLOB),
  CAST(published_at AS BLOB), CAST(looked_at AS BLOB), CAST(verdict AS BLOB)
FROM registration LEFT JOIN history USING (account_id, sign_domain, selector)
WHERE account_id = ?
"""
_ONE = "AND sign_domain = ? AND selector = ?"
_UPSERT = """
INSERT INTO history (account_id, sign_domain, selector, enabled_at, disabled_at)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET
  enabled_at = excluded.enabled_at, disabled_at = excluded.disabled_at
"""
_REPLACEMENT = """
INSERT INTO history (account_id, sign_domain, selector, replaces) VALUES (?, ?, ?, ?)
ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET replaces = excluded.replaces
"""
# A time is replaced that is not as written here, or that a wrong clock has told: one to come, or
# one before the registration, by more than _SKEW.
_LOOK = """
INSERT INTO history (account_id, sign_domain, selector, published_at, looked_at, verdict)
VALUES (?1, ?2, ?3, iif(?4 IS 'published', ?5, NULL), ?5, ?4)
ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET
  published_at = iif(
    excluded.published_at IS NOT NULL AND published_at IS NOT NULL
    AND strftime('%Y-%m-%dT%H:%M:%S+00:00', published_at) IS published_at
    AND published_at <= ?5 AND NOT EXISTS (
      SELECT * FROM registration
      WHERE account_id = ?1 AND sign_domain = ?2 AND selector = ?3
        AND julianday(published_at) < julianday(regist_date) - 1),
    published_at, excluded.published_at),
  looked_at = excluded.looked_at,
  verdict = excluded.verdict
"""
_ROTATED = """
SELECT DISTINCT new.sign_domain FROM history AS new JOIN registration AS old
  ON old.account_id = new.account_id AND old.sign_domain = new.sign_domain
  AND old.selector = new.replaces
WHERE new.account_id = ?
"""
_BEGUN = """
SELECT sign_domain, selector, CAST(replaces AS BLOB) FROM history
WHERE account_id = ?1 AND replaces IS NOT NULL AND NOT EXISTS (
  SELECT * FROM registration
  WHERE account_id = ?1 AND sign_domain = history.sign_domain AND selector = history.selector)
"""
_DELETE = "DELETE FROM history WHERE account_id = ? AND sign_domain = ? AND selector = ?"


def select_histories(
    connection: sqlite3.Connection, account_id: int
) -> dict[RegistrationKey, KeyHistory]:
    """The history of each registration of an account, without what cannot be read."""
    rows = connection.execute(f"{_SELECT} AND {IS_OURS}", (account_id,))
    return {key_of(str(row[0]), str(row[1])): _history(*row[2:]) for row in rows}


def select_history(
    connection: sqlite3.Connection, account_id: int, sign_domain: str, selector: str | None
) -> KeyHistory | None:
    """The history of one registration; None: the account has no such registration."""
    name = (account_id, sign_domain, selector or "")
    row = connection.execute(f"{_SELECT} {_ONE}", name).fetchone()
    return None if row is None else _history(*row[2:])


def select_rotated_domains(connection: sqlite3.Connection, account_id: int) -> set[str]:
    """The signing domains, in lower case, with a key that another was made to replace."""
    return {str(row[0]).lower() for row in connection.execute(_ROTATED, (account_id,))}


def select_begun_successors(
    connection: sqlite3.Connection, account_id: int
) -> dict[RegistrationKey, str]:
    """The keys that were made to replace another and have no registration; with its selector."""
    rows = connection.execute(_BEGUN, (account_id,))
    return {
        key_of(str(domain), str(selector)): text_of(old) or "" for domain, selector, old in rows
    }


def note_answers(
    connection: sqlite3.Connection,
    account_id: int,
    now: str,
    answers: Iterable[Registration],
    known_domains: Container[str],
) -> None:
    """Note since when keys are enabled or disabled, within the caller's transaction.

    Call it before the answers replace earlier ones. `known_domains` are in lower case.
    """
    at = datetime.fromisoformat(now)
    rows = []
    for answer in answers:
        may_be_known = answer.sign_domain.lower() in known_domains
        needs_no_row = _tells_its_history(answer) or answer.is_taken
        if needs_no_row and not may_be_known:
            continue
        known = None
        if may_be_known:
            known = select_history(connection, account_id, *answer[:2])
        if known is not None or not needs_no_row:
            enabled_at, disabled_at = _times_after(answer, known or KeyHistory(), at)
            name = (account_id, answer.sign_domain, answer.selector or "")
            rows.append((*name, written(enabled_at), written(disabled_at)))
    connection.executemany(_UPSERT, rows)


def note_replacements(
    connection: sqlite3.Connection, account_id: int, replaced: Mapping[RegistrationKey, str]
) -> None:
    """Note which selector each key replaces, within the caller's transaction."""
    rows = ((account_id, *key, selector) for key, selector in replaced.items())
    connection.executemany(_REPLACEMENT, rows)


def note_looks(
    connection: sqlite3.Connection,
    account_id: int,
    now: str,
    verdicts: Mapping[RegistrationKey, str],
) -> None:
    """Note what a look at DNS found, within the caller's transaction."""
    rows = ((account_id, *key, verdict, now) for key, verdict in verdicts.items())
    connection.executemany(_LOOK, rows)


def delete_histories(
    connection: sqlite3.Connection, account_id: int, keys: Iterable[RegistrationKey]
) -> None:
    """Delete the histories of `keys`, within the caller's transaction."""
    connection.executemany(_DELETE, ((account_id, *key) for key in keys))


def _tells_its_history(answer: Registration) -> bool:
    """Whether a new key needs no row: "registered" (interface 7.3), at a time that is known."""
    return answer.code == "201" and _is_date(answer.regist_date)


@lru_cache(maxsize=16)  # a batch is registered within seconds
def _is_date(text: str | None) -> bool:
    return utc_time(text) is not None


def _times_after(
    answer: Registration, known: KeyHistory, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """`enabled_at` and `disabled_at`, after an answer. By default a key is enabled (2.3)."""
    if answer.is_taken or (answer.enable is None and known.disabled_at is not None):
        return known.enabled_at, known.disabled_at
    if answer.enable is False:
        return known.enabled_at, known.disabled_at or now
    if known.enabled_at is not None and known.disabled_at is None:
        return min(known.enabled_at, now), None  # a clock that was wrong may have told it
    registered_at = utc_time(answer.regist_date) if answer.code == "201" else None
    return min(registered_at or now, now), None


def _history(
    was_registered: int, is_disabled: int, regist_date: bytes | None, *columns: bytes | None
) -> KeyHistory:
    """The history of a row of _SELECT."""
    enabled, disabled, replaces, published, looked, verdict = columns
    if was_registered and enabled is None and disabled is None:
        enabled, disabled = (None, regist_date) if is_disabled else (regist_date, None)
    published_at = time_of(published)
    registered_at = time_of(regist_date) if published_at else None
    if published_at and registered_at and published_at < registered_at - _SKEW:
        published_at = None
    return KeyHistory(
        time_of(enabled), time_of(disabled), text_of(replaces), published_at, time_of(looked),
        text_of(verdict),
    )  # fmt: skip
