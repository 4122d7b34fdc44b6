"""Backups: complete data files that no process uses, whatever the data was in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from dkimctl.errors import UsageError
from dkimctl.service.database import upgrading
from dkimctl.service.database.sqlite import LAYOUT, SqliteStore, create_tables
from dkimctl.service.database.sqlite_engine import open_engine, pragma
from dkimctl.service.database.sqlite_files import side_file
from dkimctl.system.ownership import fault_of, refuse
from dkimctl.text.escaping import printable

_HINT = "name a file that `dkimctl service backup` wrote"
# What fails is deleted, so it needs no journal.
_BEGIN = ["PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "BEGIN EXCLUSIVE"]


class BackupFile(SqliteStore):
    """An open backup, which can only be read."""

    hint = _HINT

    @classmethod
    def open_only_to_read(cls, path: Path) -> Self:
        """Raises UsageError if it is missing, in use, not safe from other users, not ours, of a
        newer version, or damaged.
        """
        _require_file(path)
        store = cls(path, open_engine(path, is_fixed=True))
        try:
            with store.reading() as connection:
                store.require_our_id(connection)
                _require_sound(connection, store.name)
        except BaseException:
            store.close()
            raise
        return store

    def is_current(self) -> bool:
        """Whether the tables are of this version; False: of an earlier one."""
        with self.reading() as connection:
            has_revision = pragma(connection, "user_version") == LAYOUT
            return has_revision and upgrading.is_current(connection, self.name)


@contextmanager
def filling(path: Path) -> Iterator[Connection]:
    """Make the empty file at `path` a data file with what is written to the connection.

    After the block it is sound and durable. If anything fails, the file is of no use. Raises
    SQLAlchemyError, UsageError and OSError.
    """
    engine = open_engine(path).execution_options(begin=_BEGIN)
    try:
        with engine.begin() as connection:
            create_tables(connection)
            yield connection
        with engine.begin() as connection:
            _require_sound(connection, str(path))
    finally:
        engine.dispose()
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _require_sound(connection: Connection, name: str) -> None:
    problem = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if problem != "ok":
        raise UsageError(f"{name} is damaged: {printable(str(problem))}", hint=_HINT)


def _require_file(path: Path) -> None:
    try:
        if not path.is_file():
            problem = "this is not a regular file" if path.exists() else "there is no such file"
            raise UsageError(f"{path}: {problem}", hint=_HINT)
        log = side_file(path, "wal")
        fault = fault_of(path, private=True, in_own_group=True)
        refuse(fault, UsageError, hint="move it to a directory of your own")
        is_in_use = log.exists() and log.stat().st_size > 0
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=_HINT) from None
    if is_in_use:
        raise UsageError(
            f"{path} is in use: its newest data is in {log.name}",
            hint=f"copy it with `dkimctl service backup --data {shlex.quote(str(path))} FILE`",
        )
