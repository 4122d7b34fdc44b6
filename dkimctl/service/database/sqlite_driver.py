"""Statements by the driver of SQLite alone, for those that every request makes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine, Executable
from sqlalchemy.exc import IntegrityError, OperationalError

QUICK = "PRAGMA synchronous = NORMAL"  # waits for the disk now and then only


class _Compiled(NamedTuple):
    """A statement in SQL, with the `names` of its parameters, in order, and the fixed ones."""

    sql: str
    names: Sequence[str]
    fixed: Mapping[str, Any]


class SqliteDriver:
    """Runs statements on connections of `engine` without SQLAlchemy, in a tenth of the time.

    Each statement is compiled once and kept. Values are passed as they are: columns whose type
    converts them (Boolean, DateTime) and lists for IN do not work. Safe for many threads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._compiled: dict[Executable, _Compiled] = {}
        self._idle: list[Any] = []  # taking one from SQLAlchemy's pool takes as long as a query

    def run(self, statement: Executable, parameters: Mapping[str, Any]) -> Sequence[Any] | None:
        """Run it as a transaction of its own, which may be lost if the machine fails.

        Returns the first row of its result, or None. Raises IntegrityError or OperationalError.
        """
        sql, names, fixed = self._compiled.get(statement) or self._compile(statement)
        values = {**fixed, **parameters}
        try:
            connection = self._take()
            try:
                cursor = connection.driver_connection.execute(sql, [values[one] for one in names])
                row: Sequence[Any] | None = cursor.fetchone()
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            kind = IntegrityError if isinstance(error, sqlite3.IntegrityError) else OperationalError
            raise kind(None, None, error) from error
        self._idle.append(connection)
        return row

    def close(self) -> None:
        """Return the connections to the pool."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            connection: Any = self._engine.raw_connection()
            connection.driver_connection.execute(QUICK)
            return connection

    def _compile(self, statement: Executable) -> _Compiled:
        compiled: Any = statement.compile(dialect=self._engine.dialect)  # type: ignore[attr-defined]
        self._compiled[statement] = _Compiled(
            compiled.string, compiled.positiontup, compiled.params
        )
        return self._compiled[statement]
