"""The service's data in one SQLite file."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    Table,
    bindparam,
    func,
    select,
)
from sqlalchemy import Insert as GenericInsert
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.exc import OperationalError

from dkimctl.errors import UsageError
from dkimctl.service.database import upgrading
from dkimctl.service.database.sqlite_driver import QUICK, SqliteDriver
from dkimctl.service.database.sqlite_engine import BUSY_SECONDS, open_engine, pragma, set_pragma
from dkimctl.service.database.sqlite_files import (
    HINT,
    OWN_DIRECTORY,
    holds_plain_key,
    require_file,
    require_writable,
    side_file,
)
from dkimctl.service.database.store import Store
from dkimctl.system.file_identity import file_identity
from dkimctl.system.ownership import file_fault, refuse

if TYPE_CHECKING:
    from dkimctl.service.keys.encryption import PrivateKeyEncryptor

_APPLICATION_ID = 0x444B494D  # "DKIM" in ASCII: distinguishes our files from other databases
LAYOUT = 3  # has a revision; earlier versions of dkimctl refuse it, by this number, as newer
_LOOK = 0.1  # seconds between looks, while nothing is written, whether the file is in place


class SqliteStore(Store):
    """An open data file, at `path`."""

    hint = HINT

    def __init__(
        self, path: Path, engine: Engine, encryptor: PrivateKeyEncryptor | None = None
    ) -> None:
        super().__init__(str(path), engine, encryptor)
        self.path = path
        self._identities = {path: file_identity(path)}
        self._looked_at = 0.0
        self._driver = SqliteDriver(engine)
        self._snapshots = engine.execution_options(begin=["BEGIN"])
        # A lock requested in the middle of a transaction fails at once, whatever the busy timeout.
        immediate = "BEGIN IMMEDIATE"
        self._durable = engine.execution_options(begin=["PRAGMA synchronous = FULL", immediate])
        self._quick = engine.execution_options(begin=[QUICK, immediate])
        # SQLite lets one writer at a time, and has others look again every now and then: threads
        # that wait for a lock come in turn.
        self._one_writer = threading.Lock()

    @classmethod
    def open(cls, path: Path, encryptor: PrivateKeyEncryptor | None = None) -> Self:
        """Open the data file at `path`; create it, with its directory, if it is missing.

        With an `encryptor` all private keys are encrypted, including those already in the file.
        Raises UsageError if the file cannot be used: not a data file of this service, of a newer
        version, not safe from other users, not readable and writable, locked for 10 seconds, or
        with keys encrypted with another passphrase.
        """
        require_file(path)
        require_writable(path)
        store = cls(path, open_engine(path), encryptor)
        try:
            store._prepare()
            # Only now: another program's database may be for others to read.
            refuse(file_fault(path, private=True), UsageError, hint=OWN_DIRECTORY)
        except BaseException:
            store.close()
            raise
        return store

    def require_available(self) -> None:
        super().require_available()
        self._require_in_place()

    def close(self) -> None:
        self._driver.close()
        super().close()

    def first(self, query: Select[Any], parameters: Mapping[str, Any]) -> Sequence[Any] | None:
        with self._translate_errors():
            row = self._driver.run(query, parameters)
        self._look()
        return row

    def add(self, statement: GenericInsert, row: Mapping[str, Any]) -> None:
        with self._translate_errors(), self._write_alone():
            self._driver.run(statement, row)
        self._require_in_place()

    def lock(self, connection: Connection, table: Table) -> None:
        """Nothing to do: there is one writer at a time, which was asked for at the beginning."""

    def insert_new(self, table: Table) -> Insert:
        return insert(table).on_conflict_do_nothing()

    @staticmethod
    def table_of_names() -> FromClause:
        # SQLite reads the whole table for (sign_domain, selector) IN (VALUES ...).
        name = func.json_each(bindparam("names")).table_valued("value").c.value
        pair = (func.json_extract(name, "$[0]"), func.json_extract(name, "$[1]"))
        return select(pair[0].label("sign_domain"), pair[1].label("selector")).subquery()

    @staticmethod
    def json_rows(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[str | None]:
        return func.json_group_array(func.json_array(*columns))

    def name_parameters(self, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
        return {"names": json.dumps(names)}

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:  # BEGIN and COMMIT take longer than a statement
            yield connection
        self._look()

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._snapshots.begin() as connection:
            yield connection
        self._require_in_place()

    @contextmanager
    def _write(self, durable: bool) -> Iterator[Connection]:
        engine = self._durable if durable else self._quick
        with self._write_alone(), engine.begin() as connection:
            yield connection
        self._require_in_place()

    @contextmanager
    def _write_alone(self) -> Iterator[None]:
        with self._one_writer:
            yield

    def _look(self) -> None:
        """After a read: require the file in place, at most once every _LOOK seconds."""
        if time.monotonic() > self._looked_at + _LOOK:
            self._require_in_place()

    def _require_in_place(self) -> None:
        """What was committed to a file that is no longer at its path would be lost.

        What is read from it may be out of date.
        """
        self._looked_at = 0.0  # if it is not, the next read looks again
        for path, identity in self._identities.items():
            if file_identity(path) != identity:
                raise UsageError(
                    f"the data file {path} was moved or replaced while it was in use",
                    hint="put it back, or find out what moved it; then start the service again",
                )
        self._looked_at = time.monotonic()

    def _prepare(self) -> None:
        with self.writing() as connection:
            if _is_empty(connection):
                create_tables(connection)
            else:
                self._upgrade(connection)
            if self.encryptor is not None:
                from dkimctl.service.keys.passphrase import adopt_passphrase

                self.marker = adopt_passphrase(self, connection, self.encryptor)
        self._use_write_ahead_log()
        if self.encryptor is not None:
            self._empty_write_ahead_log()

    def _upgrade(self, connection: Connection) -> None:
        self.require_our_id(connection)
        is_unversioned = pragma(connection, "user_version") < LAYOUT
        upgrading.require_current(connection, self.name, is_unversioned=is_unversioned)
        if is_unversioned:
            set_pragma(connection, "user_version", LAYOUT)

    def require_our_id(self, connection: Connection) -> None:
        """Raise UsageError for a file of another program or a newer version."""
        if pragma(connection, "application_id") != _APPLICATION_ID:
            raise UsageError(
                f"{self.path} is a database of another program",
                hint="use a data file of the service, or a path that does not exist yet",
            )
        if pragma(connection, "user_version") > LAYOUT:
            raise upgrading.newer_version(self.name)

    def _empty_write_ahead_log(self) -> None:
        """Remove plain keys that were replaced from the log as well.

        Raises UsageError if another process prevents that and plain keys remain: with a passphrase
        no key may be readable without it, and a warning would be lost once the server runs.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while not self._checkpoint():
            if time.monotonic() > deadline:
                self._require_no_plain_keys()
                return
            time.sleep(0.05)  # SQLite itself does not wait for the checkpoint of another process

    def _checkpoint(self) -> bool:
        """Whether the log is empty now."""
        with self._translate_errors(), self._engine.connect() as connection:
            # `main`, since otherwise SQLite includes the database of temporary tables.
            result = connection.exec_driver_sql("PRAGMA main.wal_checkpoint(TRUNCATE)").one()
        return not result.busy

    def _require_no_plain_keys(self) -> None:
        log = side_file(self.path, "wal")
        if any(holds_plain_key(path) for path in (log, self.path)):
            raise UsageError(
                f"{self.path} and {log.name} hold unencrypted private keys, and are in use",
                hint="stop other programs that use the file, such as a backup, and start again",
            )

    def _use_write_ahead_log(self) -> None:
        """Let readers continue during a write.

        SQLite changes the mode only outside a transaction and while no other process uses the
        file. Without the log the data is as safe, and the next process to open it tries again.
        """
        with suppress(OperationalError), self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            pragma(connection, "user_version")  # opens the log, which then stays
            self._identities |= {
                path: file_identity(path)
                for path in (side_file(self.path, "wal"), side_file(self.path, "shm"))
            }


def create_tables(connection: Connection) -> None:
    """Make a new file a data file."""
    upgrading.create(connection)
    set_pragma(connection, "application_id", _APPLICATION_ID)
    set_pragma(connection, "user_version", LAYOUT)


def _is_empty(connection: Connection) -> bool:
    """Whether the file is new: without tables or views, and without another program's IDs."""
    count = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
    ids = (pragma(connection, name) for name in ("application_id", "user_version"))
    return not (count or any(ids))
