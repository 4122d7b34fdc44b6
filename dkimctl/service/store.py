"""The service's data: one SQLite file, safe to use from many threads and processes."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from dkimctl.errors import UsageError
from dkimctl.files import is_private
from dkimctl.service.schema import metadata, passphrases

if TYPE_CHECKING:
    from dkimctl.service.encryption import PrivateKeyEncryptor

SCHEMA_VERSION = 2
_APPLICATION_ID = 0x444B494D  # "DKIM" in ASCII: tells our files from other SQLite files
_BUSY_SECONDS = 5  # nobody writes for longer; meanwhile a thread of the server waits
_PLAIN_KEY = b"-----BEGIN PRIVATE KEY"
_PIECE = 1 << 20  # bytes
_HINT = "check the file, its permissions and the free disk space, or give another data file"


class Store:
    """An open data file. Close it after use.

    Every operation opens its own transaction, so one store serves any number of threads.
    """

    def __init__(
        self, path: Path, engine: Engine, sealer: PrivateKeyEncryptor | None = None
    ) -> None:
        self.path = path
        self.sealer = sealer
        self.marker: bytes | None = None
        self._engine = engine
        self._reading = engine.execution_options(begin="BEGIN")
        # SQLite must know of the writing at BEGIN: a lock that is asked for in the middle
        # of a transaction fails at once, however long the busy timeout.
        self._writing = engine.execution_options(begin="BEGIN IMMEDIATE")

    @classmethod
    def open(cls, path: Path, sealer: PrivateKeyEncryptor | None = None) -> Self:
        """Open the data file at `path`; create it, with its directory, if it is missing.

        `sealer` is for private keys: all are sealed afterwards, and whoever opens the file without
        finds them so. Raises UsageError where the file cannot be used: not a data file of this
        service, of a newer version, open to other users, not readable and writable, locked for
        5 seconds, or with keys that are sealed with another passphrase.
        """
        _create_file(path)
        _require_writable(path)
        store = cls(path, _create_engine(path), sealer)
        try:
            store._prepare()
            _require_private(path)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the data. Raises UsageError if the file fails."""
        with self._plain_errors(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection that alone may write; commits at the end of the block, or rolls back.

        Raises UsageError if the file fails; IntegrityError passes, for the caller to judge.
        """
        with self._plain_errors(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise UsageError(
                f"{self.path}: cannot use the service data: {error.orig}", hint=_HINT
            ) from error.orig

    def _prepare(self) -> None:
        with self.writing() as connection:
            if _is_empty(connection):
                metadata.create_all(connection)
                _set_pragma(connection, "application_id", _APPLICATION_ID)
                _set_pragma(connection, "user_version", SCHEMA_VERSION)
            else:
                self._check_format(connection)
                _upgrade(connection)
            if self.sealer is not None:
                from dkimctl.service.passphrase import agree

                self.marker = agree(connection, self.path, self.sealer)
        self._use_write_ahead_log()
        if self.sealer is not None:
            self._empty_write_ahead_log()

    def _check_format(self, connection: Connection) -> None:
        if _pragma(connection, "application_id") != _APPLICATION_ID:
            raise UsageError(
                f"{self.path} is a database, but holds no service data",
                hint="give the path of a service data file, or of one that does not exist yet",
            )
        if _pragma(connection, "user_version") > SCHEMA_VERSION:
            raise UsageError(
                f"{self.path} was written by a newer dkimctl",
                hint="use that version of dkimctl, or another data file",
            )

    def _empty_write_ahead_log(self) -> None:
        """See that nothing of what was replaced stays in the log beside the file.

        Raises UsageError where others keep SQLite from it, and keys are there that are not sealed:
        who gives a passphrase counts on it that no key can be read without, and a warning would be
        read by nobody once the server runs.
        """
        over = time.monotonic() + _BUSY_SECONDS
        while not self._is_log_emptied():
            if time.monotonic() > over:
                self._require_no_plain_keys()
                return
            time.sleep(0.05)  # SQLite itself does not wait for another who does the same

    def _is_log_emptied(self) -> bool:
        with self._plain_errors(), self._engine.connect() as connection:
            statement = "PRAGMA main.wal_checkpoint(TRUNCATE)"  # without main: SQLite's own as well
            (is_busy, *_) = connection.exec_driver_sql(statement).one()
        return not is_busy

    def _require_no_plain_keys(self) -> None:
        log = self.path.with_name(f"{self.path.name}-wal")
        if any(_holds_plain_key(path) for path in (log, self.path)):
            raise UsageError(
                f"{self.path} and {log.name} hold private keys that are not sealed, and are in use",
                hint="stop what uses the data file, such as a backup, and start again",
            )

    def _use_write_ahead_log(self) -> None:
        """Let readers go on while one writes.

        SQLite allows the change only outside a transaction and while nobody else is at the
        file; the data is as safe without, and whoever opens the file next asks again.
        """
        with suppress(OperationalError), self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def _create_file(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)  # SQLite gives its side files the mode of this one
    except OSError as error:
        raise UsageError(
            f"{path}: cannot create the service data file: {error.strerror}", hint=_HINT
        ) from error


def _require_writable(path: Path) -> None:
    # SQLite would open it for reading alone, and fail at the first request that writes.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UsageError(f"{path}: the service data file cannot be written", hint=_HINT)


def _require_private(path: Path) -> None:
    if not is_private(path.stat()):
        raise UsageError(
            f"{path} can be read or changed by other users, and holds private keys",
            hint=f"run `chmod 600 {shlex.quote(str(path))}`",
        )


def _holds_plain_key(path: Path) -> bool:
    """Whether a key is there that is not sealed, or what is left of one."""
    if not path.exists():
        return False
    end = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if _PLAIN_KEY in end + piece:
                return True
            end = piece[-len(_PLAIN_KEY) :]
    return False


def _create_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path.absolute())),
        connect_args={"timeout": _BUSY_SECONDS},
        hide_parameters=True,  # they hold hashes and private keys
        max_overflow=-1,
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.isolation_level = None  # transactions begin in _begin, not in the driver
    dbapi_connection.execute("PRAGMA foreign_keys = ON")
    # What is replaced, such as a key by its sealed form, is not to stay in the file's free pages.
    dbapi_connection.execute("PRAGMA secure_delete = ON")


def _begin(connection: Connection) -> None:
    if statement := connection.get_execution_options().get("begin"):
        connection.exec_driver_sql(statement)


def _upgrade(connection: Connection) -> None:
    """Bring a file of version 1 up to this one, in place."""
    if _pragma(connection, "user_version") < SCHEMA_VERSION:
        passphrases.create(connection, checkfirst=True)
        _set_pragma(connection, "user_version", SCHEMA_VERSION)


def _is_empty(connection: Connection) -> bool:
    """Whether nobody has used the file: a view, or a number of another program, is use."""
    count = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
    numbers = (_pragma(connection, name) for name in ("application_id", "user_version"))
    return not (count or any(numbers))


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _set_pragma(connection: Connection, name: str, value: int) -> None:
    connection.exec_driver_sql(f"PRAGMA {name} = {value}")
