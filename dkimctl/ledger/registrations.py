"""Registrations as rows of the ledger, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from dkimctl.models.registration import DnsRecord, Registration

_COLUMNS = (
    'sign_domain, selector, key_len, start_date, "default", enable, '
    "fqdn, type, value, regist_date, code, message"
)
_KINDS = (str, str, int, str, int, int, str, str, str, str, str, str)  # of the columns
_SELECT = f"SELECT {_COLUMNS} FROM registration WHERE account_id = ?"  # noqa: S608 - a constant
# An upsert and not a replacement: the id keeps the order of the first registration, and an
# attribute that an answer leaves out stays as the one before had it.
_RECORD = f"""
INSERT INTO registration (account_id, {_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
_DELETE = "DELETE FROM registration WHERE account_id = ? AND sign_domain = ? AND selector = ?"


def record_registrations(
    connection: sqlite3.Connection, account_id: int, registrations: Iterable[Registration]
) -> None:
    rows = [_to_row(account_id, registration) for registration in registrations]
    connection.executemany(_RECORD, rows)


def select_registrations(
    connection: sqlite3.Connection, account_id: int, rest: str, *values: object
) -> Iterator[Registration]:
    """Those of an account. `rest` is what the query goes on with, and `values` are its own."""
    found = connection.execute(f"{_SELECT} {rest}", (account_id, *values))
    return map(_from_row, found)


def delete_registrations(
    connection: sqlite3.Connection, account_id: int, registrations: Iterable[Registration]
) -> None:
    rows = [(account_id, found.sign_domain, found.selector or "") for found in registrations]
    connection.executemany(_DELETE, rows)


def signing_domains(connection: sqlite3.Connection, account_id: int) -> set[str]:
    """Of all registrations of an account, in lower case."""
    query = "SELECT DISTINCT sign_domain FROM registration WHERE account_id = ?"
    return {str(row[0]).lower() for row in connection.execute(query, (account_id,))}


def _to_row(account_id: int, registration: Registration) -> tuple[object, ...]:
    """The values of _RECORD."""
    record = registration.record
    return (
        account_id,
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


def _from_row(row: Sequence[Any]) -> Registration:
    """The registration of a row of _SELECT, whatever somebody else may have put into it."""
    if not _is_sound(tuple(map(type, row))):
        row = [_mended(column, kind) for column, kind in zip(row, _KINDS, strict=True)]
    # fmt: off
    (sign_domain, selector, key_len, start_date, default, enable,
     fqdn, type_, value, regist_date, code, message) = row
    # fmt: on
    return Registration(
        sign_domain or "",
        selector or None,
        key_len,
        start_date,
        default,
        None if enable is None else bool(enable),
        None if value is None else DnsRecord(fqdn or "", type_ or "", value),
        regist_date,
        code,
        message,
    )


@lru_cache(maxsize=64)  # the rows of a ledger are all of a few shapes
def _is_sound(types: tuple[type, ...]) -> bool:
    return all(found in (kind, type(None)) for found, kind in zip(types, _KINDS, strict=True))


def _mended(column: object, kind: type) -> object:
    if column is None or isinstance(column, kind):
        return column
    return str(column) if kind is str else None
