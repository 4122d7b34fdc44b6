"""What the service answered, per account and (signing domain, selector), in SQLite."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from dkimctl.errors import LedgerError
from dkimctl.models import DnsRecord, Registration

_VERSION = 1
_NO_ACCOUNT = -1  # of a reader, where the account has nothing yet
_SCHEMA = """
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
_COLUMNS = (
    'sign_domain, selector, key_len, start_date, "default", enable, '
    "fqdn, type, value, regist_date, code, message"
)
# An upsert and not a replacement: the id keeps the order of the first registration, and an
# attribute that an answer leaves out stays as the one before had it.
_RECORD = f"""
INSERT INTO registration (account_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET
  key_len = coalesce(excluded.key_len, key_len),
  start_date = coalesce(excluded.start_date, start_date),
  "default" = coalesce(excluded."default", "default"),
  enable = coalesce(excluded.enable, enable),
  fqdn = coalesce(excluded.fqdn, fqdn),
  type = coalesce(excluded.type, type),
  value = coalesce(excluded.value, value),
  regist_date = coalesce(excluded.regist_date, regist_date),
  code = excluded.code,
  message = excluded.message
"""  # noqa: S608 - the columns are the constant above


class Ledger:
    """The registrations of one account. Any trouble with the file is a LedgerError.

    One that the service did not give us (409 without data, interface 7.3) has no record.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, account_id: int) -> None:
        self._connection = connection
        self._path = path
        self._account_id = account_id
        self._known: set[str] | None = None  # the signing domains, once asked for

    @classmethod
    def open(cls, path: Path, *, base_url: str, client_id: str) -> Self:
        """Open the ledger of one account, making the file where there is none."""
        with _explained(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = _connect(path, for_writing=True)
            account_id = _add_account(connection, base_url, client_id)
        return cls(connection, path, account_id)

    @classmethod
    def open_existing(cls, path: Path, *, base_url: str, client_id: str) -> Self:
        """Open the ledger to read it only; where there is no file, it is empty and none is made."""
        with _explained(path):
            connection = _connect(path if path.exists() else ":memory:", for_writing=False)
            account_id = _find_account(connection, base_url, client_id)
        return cls(connection, path, _NO_ACCOUNT if account_id is None else account_id)

    def of_domain(self, sign_domain: str) -> list[Registration]:
        """What is known of one signing domain, oldest first."""
        # Of 100,000 new domains none is there, and a query for each would take longer than
        # reading their file.
        if sign_domain.lower() not in self._domains():
            return []
        return list(self._select("AND sign_domain = ? ORDER BY id", sign_domain))

    def all(self) -> Iterator[Registration]:
        """Everything that is known of the account, by signing domain and selector."""
        return self._select("ORDER BY sign_domain, selector")

    def record(self, registrations: Sequence[Registration]) -> None:
        """Keep what the service answered, replacing what it answered before; durable on return."""
        rows = [(self._account_id, *_to_row(registration)) for registration in registrations]
        with _explained(self._path), self._connection:
            self._connection.executemany(_RECORD, rows)
        if self._known is not None:
            self._known.update(registration.sign_domain.lower() for registration in registrations)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _domains(self) -> set[str]:
        if self._known is None:
            query = "SELECT DISTINCT sign_domain FROM registration WHERE account_id = ?"
            with _explained(self._path):
                rows = self._connection.execute(query, (self._account_id,))
                self._known = {row[0].lower() for row in rows}
        return self._known

    def _select(self, rest: str, *values: object) -> Iterator[Registration]:
        query = (
            f"SELECT {_COLUMNS} FROM registration "  # noqa: S608 - `rest` is written above
            f"WHERE account_id = ? {rest}"
        )
        with _explained(self._path):
            for row in self._connection.execute(query, (self._account_id, *values)):
                yield _from_row(row)


def _connect(path: Path | str, *, for_writing: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10)
    try:
        if for_writing:
            _use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
        _ensure_schema(connection, str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers go on while one writes.

    SQLite makes the change only while nobody else is at the file, without waiting for them;
    then whoever opens the file next asks again, and meanwhile the data is as safe.
    """
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _ensure_schema(connection: sqlite3.Connection, path: str) -> None:
    """Make the schema where there is none; two processes may come here at once."""
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if _version(connection) == 0:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
    if _version(connection) > _VERSION:
        raise LedgerError(
            f"the ledger {path} was written by a newer dkimctl",
            hint="upgrade dkimctl, or name another state directory in DKIMCTL_STATE_DIR",
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _find_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int | None:
    query = "SELECT id FROM account WHERE base_url = ? AND client_id = ?"
    row = connection.execute(query, (base_url, client_id)).fetchone()
    return None if row is None else int(row[0])


def _add_account(connection: sqlite3.Connection, base_url: str, client_id: str) -> int:
    found = _find_account(connection, base_url, client_id)
    if found is None:
        insert = "INSERT OR IGNORE INTO account (base_url, client_id) VALUES (?, ?)"
        with connection:
            connection.execute(insert, (base_url, client_id))
        return _add_account(connection, base_url, client_id)
    return found


def _to_row(registration: Registration) -> tuple[object, ...]:
    record = registration.record
    return (
        registration.sign_domain,
        registration.selector or "",
        registration.key_len,
        registration.start_date,
        registration.default,
        registration.enable,
        record and record.fqdn,
        record and record.type,
        record and record.value,
        registration.regist_date,
        registration.code,
        registration.message,
    )


def _from_row(row: tuple[object, ...]) -> Registration:
    sign_domain, selector, key_len, start_date, default, enable, *rest = row
    fqdn, type_, value, regist_date, code, message = map(_text, rest)
    return Registration(
        str(sign_domain),
        selector=_text(selector) or None,
        key_len=_number(key_len),
        start_date=_text(start_date),
        default=_number(default),
        enable=None if enable is None else bool(enable),
        record=None if value is None else DnsRecord(fqdn or "", type_ or "", value),
        regist_date=regist_date,
        code=code,
        message=message,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the file system and SQLite say into a LedgerError."""
    try:
        yield
    except (OSError, sqlite3.Error, OverflowError, UnicodeError) as error:
        raise LedgerError(
            f"cannot use the ledger {path}: {error}",
            hint="free or repair that place, or name another state directory in DKIMCTL_STATE_DIR",
        ) from error
