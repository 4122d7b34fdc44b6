"""The tables of the ledger, and their rows, which another program may have changed.

`PRAGMA user_version` holds the version: 0 is a file without tables, 1 has no table for open
requests, 2 none for publications, 3 no `history`, which has replaced that. 4 may have several
accounts whose URLs are equivalent. 5 has no tables for closed keys and alarms, 6 neither the
records of closed keys nor when they came back, 7 no events, and 8 nothing of DMARC reports.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from sys import intern
from typing import Any

from dkimctl.models import DnsRecord, KeyHistory, Registration, utc_time

_OF_ACCOUNT = "account_id INTEGER NOT NULL REFERENCES account (id)"
_OF_KEY = f"""{_OF_ACCOUNT},
  sign_domain TEXT NOT NULL COLLATE NOCASE,
  selector TEXT NOT NULL COLLATE NOCASE"""
_ONE_A_KEY = "PRIMARY KEY (account_id, sign_domain, selector)"
_REGISTRATIONS = f"""
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  base_url TEXT NOT NULL,
  client_id TEXT NOT NULL,
  UNIQUE (base_url, client_id)
);
CREATE TABLE registration (
  id INTEGER PRIMARY KEY, {_OF_KEY},
  key_len INTEGER, start_date TEXT, "default" INTEGER, enable INTEGER,
  fqdn TEXT, type TEXT, value TEXT,
  regist_date TEXT, code TEXT, message TEXT,
  UNIQUE (account_id, sign_domain, selector)
);
"""
# `entries`: JSON, a list of [signing domain, selector]; null lets the service choose the selector.
_SENDINGS = f"""
CREATE TABLE sending (
  id INTEGER PRIMARY KEY, {_OF_ACCOUNT}, sent_at TEXT NOT NULL, entries TEXT NOT NULL
)
"""
# Of version 3 alone. `published_at`: when the record was first seen in DNS.
_PUBLICATIONS = f"CREATE TABLE publication ({_OF_KEY}, published_at TEXT NOT NULL, {_ONE_A_KEY})"
# See KeyHistory, and `history_of` for keys without a row; times: YYYY-MM-DDThh:mm:ss+00:00. Where
# version 3 does not tell since when a key is enabled or disabled, it is since the migration. Since
# when a record is published it does not tell: any server counted, and the first sighting alone.
_HISTORIES = f"""
CREATE TABLE history ({_OF_KEY},
  enabled_at TEXT, disabled_at TEXT, replaces TEXT,
  published_at TEXT, looked_at TEXT, verdict TEXT,
  {_ONE_A_KEY}
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
"""  # noqa: S608 - constants
# With the old name, a run of version 4 that goes on would add answers to an account that is gone.
_OPEN_REQUESTS = "ALTER TABLE sending RENAME TO open_request"
# See ClosedKey and Alarm; times as in `history`.
_CLOSED_KEYS = f"""
CREATE TABLE closed_key ({_OF_KEY},
  "default" INTEGER, created_at TEXT, started_at TEXT, replaced_by TEXT, closed_at TEXT NOT NULL,
  {_ONE_A_KEY}
);
CREATE TABLE alarm ({_OF_ACCOUNT},
  subject TEXT NOT NULL, problem TEXT NOT NULL,
  first_seen TEXT NOT NULL, looked_at TEXT NOT NULL, told_at TEXT,
  PRIMARY KEY (account_id, subject, problem)
)
"""
# What is needed to put the record of a closed key back.
_RECORDS = """
ALTER TABLE closed_key ADD key_len INTEGER; ALTER TABLE closed_key ADD start_date TEXT;
ALTER TABLE closed_key ADD fqdn TEXT; ALTER TABLE closed_key ADD type TEXT;
ALTER TABLE closed_key ADD value TEXT; ALTER TABLE closed_key ADD regist_date TEXT;
ALTER TABLE history ADD closed_at TEXT; ALTER TABLE history ADD signed_at TEXT
"""
# See Event; rows are only added. `at` is a time as in `history`.
_EVENTS = f"""
CREATE TABLE event (
  id INTEGER PRIMARY KEY, {_OF_KEY},
  at TEXT NOT NULL, username TEXT NOT NULL, machine TEXT NOT NULL, command TEXT NOT NULL,
  what TEXT NOT NULL, detail TEXT NOT NULL
)
"""
# See ReportedMail. `day`: YYYY-MM-DD, the last that a report covers; networks: JSON, with messages.
_MAIL = f"""
CREATE TABLE report ({_OF_ACCOUNT},
  reporter TEXT NOT NULL, report_id TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (account_id, reporter, report_id)
);
CREATE TABLE mail ({_OF_KEY},
  day TEXT NOT NULL, reporter TEXT NOT NULL, passed INTEGER NOT NULL, failed INTEGER NOT NULL,
  passed_from TEXT NOT NULL, failed_from TEXT NOT NULL,
  PRIMARY KEY (account_id, sign_domain, selector, day, reporter)
) WITHOUT ROWID
"""
# Each step upgrades a file by one version.
STEPS = (
    _REGISTRATIONS, _SENDINGS, _PUBLICATIONS, _HISTORIES, _OPEN_REQUESTS, _CLOSED_KEYS, _RECORDS,
    _EVENTS, _MAIL,
)  # fmt: skip

# Those with rows of an account.
TABLES = (
    "registration", "open_request", "history", "closed_key", "alarm", "event", "report", "mail"
)  # fmt: skip
COLUMNS = (
    'sign_domain, selector, key_len, start_date, "default", enable, '
    "fqdn, type, value, regist_date, code, message"
)
COLUMN_TYPES = (str, str, int, str, int, int, str, str, str, str, str, str)  # of the columns
IS_OURS = "NOT (coalesce(code, '') = '409' AND value IS NULL)"
ADD_ACCOUNT = "INSERT INTO account (base_url, client_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
# The registrations of an account, by its names.
OF_ACCOUNT = """
FROM registration JOIN account ON account.id = account_id WHERE base_url = ?1 AND client_id = ?2
"""
# The columns of a history after those of its registration, and where both are.
HISTORY = """
CASE WHEN code = '201' THEN 1 ELSE 0 END, CASE WHEN enable = 0 THEN 1 ELSE 0 END,
CAST(regist_date AS BLOB),
CAST(enabled_at AS BLOB), CAST(disabled_at AS BLOB), CAST(replaces AS BLOB),
CAST(published_at AS BLOB), CAST(looked_at AS BLOB), CAST(verdict AS BLOB),
CAST(closed_at AS BLOB), CAST(signed_at AS BLOB)
FROM registration LEFT JOIN history USING (account_id, sign_domain, selector)
WHERE account_id = ?
"""
Text = str | bytes | None
_SKEW = timedelta(days=1)  # a clock may differ so much from that of the service


def row_of(registration: Registration) -> tuple[object, ...]:
    """The values of COLUMNS."""
    sign_domain, selector, *asked, record, regist_date, code, message = registration
    fields = record or (None, None, None)
    *numbers, enable = asked
    is_enabled = None if enable is None else int(enable)
    return sign_domain, selector or "", *numbers, is_enabled, *fields, regist_date, code, message


def registration_of(row: Sequence[Any]) -> Registration:
    """The registration of a row of COLUMNS; values of the wrong type are converted."""
    if not _has_column_types(tuple(map(type, row))):
        row = [_converted(*pair) for pair in zip(row, COLUMN_TYPES, strict=True)]
    # fmt: off
    (sign_domain, selector, key_len, start_date, default, enable,
     fqdn, type_, value, regist_date, code, message) = row
    # What most rows have in common is kept once.
    record = None if value is None else DnsRecord(fqdn or "", intern(type_ or ""), value)
    return Registration(
        sign_domain or "", intern(selector) if selector else None, key_len, start_date, default,
        None if enable is None else bool(enable), record, regist_date,
        code and intern(code), message and intern(message),
    )
    # fmt: on


def _converted(value: object, type_: type) -> object:
    if value is None or isinstance(value, type_):
        return value
    return str(value) if type_ is str else None


@lru_cache(maxsize=64)  # rows differ only in which values are None
def _has_column_types(types: Sequence[type]) -> bool:
    return all(map(issubclass, types, ((type_, type(None)) for type_ in COLUMN_TYPES)))


def history_of(
    was_registered: int, is_disabled: int, regist_date: Text, *columns: Text
) -> KeyHistory:
    """The history of the columns of HISTORY.

    Most keys need no row: one that was registered (201), and of which nothing else is known, has
    been enabled or disabled since its `regist_date`. A row that states neither time changes
    nothing in that.
    """
    enabled, disabled, replaces, published, looked, verdict, closed, signed = columns
    if was_registered and enabled is None and disabled is None:
        enabled, disabled = (None, regist_date) if is_disabled else (regist_date, None)
    published_at = time_of(published)
    if published_at:
        published_at = published_since(published_at, time_of(regist_date))
    return KeyHistory(
        time_of(enabled), time_of(disabled), text_of(replaces), published_at, time_of(looked),
        text_of(verdict), time_of(closed), time_of(signed),
    )  # fmt: skip


def published_since(
    published_at: datetime | None, registered_at: datetime | None
) -> datetime | None:
    """The first; but not what a wrong clock gave, which was before the registration."""
    is_wrong = published_at and registered_at and published_at < registered_at - _SKEW
    return None if is_wrong else published_at


def times_after(
    answer: Registration, known: KeyHistory, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """`enabled_at` and `disabled_at`, after an answer. By default a key is enabled (2.3)."""
    if answer.is_taken or (answer.enable is None and known.disabled_at is not None):
        return known.enabled_at, known.disabled_at
    if answer.enable is False:
        return known.enabled_at, known.disabled_at or now
    if known.enabled_at is not None and known.disabled_at is None:
        return min(known.enabled_at, now), None  # a clock that was wrong may have given it
    registered_at = utc_time(answer.regist_date) if answer.code == "201" else None
    return min(registered_at or now, now), None


def text_of(value: Text) -> str | None:
    """Text; what is not valid UTF-8 is escaped.

    Select text of a file as bytes: SQLite's driver fails on all rows if one that something else
    wrote is not valid text.
    """
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


@lru_cache(maxsize=1024)  # keys that were registered or seen together have the same times
def time_of(value: Text) -> datetime | None:
    """A time (UTC); None also for other text."""
    return None if value is None else utc_time(text_of(value))


@lru_cache(maxsize=1000)
def date_of(value: Text) -> date | None:
    """A day; None also for other text."""
    try:
        return date.fromisoformat(text_of(value) or "")
    except ValueError:
        return None


def damage_error(reason: str) -> sqlite3.DatabaseError:
    """An error for damage that SQLite itself does not notice."""
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def find_account(store: Any, base_url: str, client_id: str) -> int:
    """The account's ID, or one that no row has if the account is not in the ledger."""
    query = "SELECT id FROM account WHERE base_url = ? AND client_id = ?"
    row = store.execute(query, (base_url, client_id)).fetchone()
    return -1 if row is None else require_row_id(row[0])


def require_row_id(value: object) -> int:
    """The ID of a row. Raises sqlite3.DatabaseError unless it is an integer."""
    if isinstance(value, int):
        return value
    raise damage_error("a row in it has no ID")
