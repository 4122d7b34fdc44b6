"""Registrations as rows of the ledger."""

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
_TYPES = (str, str, int, str, int, int, str, str, str, str, str, str)  # of the columns
_SELECT = f"SELECT {_COLUMNS} FROM registration WHERE account_id = ?"  # noqa: S608 - a constant
# An upsert, so that the ID keeps the order of the first answers, and a field that an answer
# leaves out keeps its value.
_UPSERT = f"""
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
IS_OURS = "NOT (code IS '409' AND value IS NULL)"
_SELECT_KEYS = f"""
SELECT lower(sign_domain), lower(selector) FROM registration WHERE account_id = ?1
UNION ALL SELECT lower(sign_domain), '' FROM registration WHERE account_id = ?1 AND {IS_OURS}
"""  # noqa: S608 - a constant
_DELETE = "DELETE FROM registration WHERE account_id = ? AND sign_domain = ? AND selector = ?"


def record_registrations(
    connection: sqlite3.Connection, account_id: int, registrations: Iterable[Registration]
) -> None:
    rows = [_to_row(account_id, registration) for registration in registrations]
    connection.executemany(_UPSERT, rows)


def select_registrations(
    connection: sqlite3.Connection, account_id: int, rest: str, *values: object
) -> Iterator[Registration]:
    """Select registrations of an account. `rest` continues the query; `values` are its own."""
    rows = connection.execute(f"{_SELECT} {rest}", (account_id, *values))
    return map(_from_row, rows)


def delete_registrations(
    connection: sqlite3.Connection, account_id: int, registrations: Iterable[Registration]
) -> None:
    rows = [
        (account_id, registration.sign_domain, registration.selector or "")
        for registration in registrations
    ]
    connection.executemany(_DELETE, rows)


def select_signing_domains(connection: sqlite3.Connection, account_id: int) -> set[str]:
    """The signing domains of all registrations of an account, in lower case."""
    query = "SELECT DISTINCT sign_domain FROM registration WHERE account_id = ?"
    return {str(row[0]).lower() for row in connection.execute(query, (account_id,))}


def select_keys(connection: sqlite3.Connection, account_id: int) -> set[tuple[str, str]]:
    """The keys of all registrations of an account; of ours, also those with "" for the selector.

    Pairs and not RegistrationKeys, which they equal: making those takes ten times as long.
    """
    return set(connection.execute(_SELECT_KEYS, (account_id,)))


def _to_row(account_id: int, registration: Registration) -> tuple[object, ...]:
    """The values of _UPSERT."""
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
    """The registration of a row of _SELECT; values of the wrong type are converted."""
    if not _has_column_types(tuple(map(type, row))):
        row = [_converted(value, type_) for value, type_ in zip(row, _TYPES, strict=True)]
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


@lru_cache(maxsize=64)  # rows differ only in which values are None
def _has_column_types(types: tuple[type, ...]) -> bool:
    return all(type_ in (wanted, type(None)) for type_, wanted in zip(types, _TYPES, strict=True))


def _converted(value: object, type_: type) -> object:
    if value is None or isinstance(value, type_):
        return value
    return str(value) if type_ is str else None
