"""Copying all data that lasts: into a backup, and from one into an empty file or database."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from dkimctl.errors import OutputError, UsageError
from dkimctl.service import audit
from dkimctl.service.database.backup_file import BackupFile, filling
from dkimctl.service.database.schema import (
    clients,
    failed_logins,
    key_pool,
    metadata,
    passphrases,
    tokens,
)
from dkimctl.service.database.sqlite import SqliteStore
from dkimctl.service.database.store import Store
from dkimctl.system.ownership import directory_fault, refuse
from dkimctl.system.writing import create_private, publish
from dkimctl.text.escaping import printable

# Tokens and failed logins last an hour at most. Keys made ahead must be used once only: those of an
# old backup may have become registrations since.
_SHORT_LIVED = {tokens, failed_logins, key_pool}
_LASTING = [table for table in metadata.sorted_tables if table not in _SHORT_LIVED]
_AT_ONCE = 1000  # rows in memory; those with keys have some 3 KB

Rows = Sequence[Mapping[str, Any]]
Progress = Callable[[int, int], None]
"""Takes how many of how many rows are copied."""


def back_up(store: Store, path: Path, progress: Progress) -> Counter[str]:
    """Copy the data to a new file, as it is at one moment; returns the rows by name of the table.

    The file is complete or not there. Raises UsageError if it exists, if other users could replace
    it, or if the data cannot be read; OutputError if it cannot be written.
    """
    _require_new(path)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        create_private(temporary, "")
        with store.writing() as connection:
            audit.record(connection, [audit.operator_event("backup", str(path.absolute()))])
        with filling(temporary) as target:
            counts = _copy(store, target, progress)
        publish(temporary, path)
    except FileExistsError:
        raise _exists(path) from None
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise _unwritten(path, printable(str(cause))) from None
    except OSError as error:
        raise _unwritten(path, error.strerror or str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return counts


@contextmanager
def opened_backup(path: Path) -> Iterator[SqliteStore]:
    """The backup to restore; one of an earlier version as an upgraded copy. Raises UsageError."""
    with closing(BackupFile.open_only_to_read(path)) as backup:
        if backup.is_current():
            yield backup
            return
        with tempfile.TemporaryDirectory(prefix="dkimctl-") as directory:
            copy = Path(directory) / path.name
            create_private(copy, "")
            shutil.copyfile(path, copy)
            with closing(SqliteStore.open(copy)) as upgraded:
                upgraded.name = backup.name
                yield upgraded


def restore(backup: Store, store: Store, progress: Progress) -> Counter[str]:
    """Copy a backup into data without clients, all or nothing; returns the rows as `back_up` does.

    Raises UsageError if there are clients, or if the backup or the data cannot be used.
    """
    event = audit.operator_event("restore", str(Path(backup.name).absolute()))
    try:
        with store.writing() as connection:
            _require_empty(connection, store)
            store.lock(connection, clients)  # without clients, nothing else happens
            _require_empty(connection, store)
            for table in (passphrases, key_pool):  # that a running service may have made
                connection.execute(delete(table))
            counts = _copy(backup, connection, progress)
            audit.record(connection, [event])
    except IntegrityError:
        raise UsageError(
            f"{backup.name} contradicts itself: another program has changed it",
            hint="use another backup",
        ) from None
    return counts


def _copy(source: Store, target: Connection, progress: Progress) -> Counter[str]:
    counts: Counter[str] = Counter()
    with closing(_rows(source)) as chunks:
        for total, table, rows in chunks:
            _insert(source, target, table, rows)
            counts[table.name] += len(rows)
            progress(counts.total(), total)
    return counts


def _rows(source: Store) -> Generator[tuple[int, Table, Rows], None, None]:
    """All rows in parts, each with the number of all rows, and its table."""
    with source.snapshot() as connection:
        total = sum(map(_counter(connection), _LASTING))
        for table in _LASTING:
            # IDs begin at 1 again, since a database does not count those that it is given.
            columns = [column for column in table.columns if column.name != "audit_id"]
            query = select(*columns).order_by(*table.primary_key)
            query = query.execution_options(yield_per=_AT_ONCE)
            with connection.execute(query) as result:  # closes the cursor also after an error
                for rows in result.mappings().partitions():
                    yield total, table, [dict(row) for row in rows]


def _insert(source: Store, target: Connection, table: Table, rows: Rows) -> None:
    try:
        target.execute(insert(table), rows)
    except DBAPIError:
        raise
    except StatementError:  # not an error of the target
        raise UsageError(
            f"{source.name}: cannot use the service data: a value in {table.name} is invalid",
            hint="use an earlier backup",
        ) from None


def _counter(connection: Connection) -> Callable[[Table], int]:
    return lambda table: connection.scalar(select(func.count()).select_from(table)) or 0


def _require_empty(connection: Connection, store: Store) -> None:
    if connection.execute(select(clients.c.client_id).limit(1)).first():
        raise UsageError(
            f"{store.name} has clients already, and is not overwritten",
            hint="restore to a data file that does not exist yet, or to an empty database",
        )


def _require_new(path: Path) -> None:
    """Raise UsageError at once, not after a long copy."""
    if os.path.lexists(path):
        raise _exists(path)
    try:
        fault = directory_fault(path.parent, in_own_group=True)
    except OSError as error:
        raise _unwritten(path, error.strerror or str(error)) from None
    refuse(fault, UsageError, hint="name a file in a directory of your own")


def _exists(path: Path) -> UsageError:
    return UsageError(
        f"{path} exists, and is not overwritten: it may be the only backup",
        hint="name a new file, such as one with the date in its name",
    )


def _unwritten(path: Path, reason: str) -> OutputError:
    return OutputError(
        f"cannot write {path}: {reason}",
        hint="check that its directory exists and has space; there is no backup",
    )
