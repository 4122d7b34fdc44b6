"""The service's data, in a SQLite file or in PostgreSQL, safe for many threads and processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken

from dkimctl import files
from dkimctl.errors import UsageError
from dkimctl.service import schema
from dkimctl.service.key_pairs import PLAIN_HEADER, Passphrase, WrongPassphrase
from dkimctl.service.location import DatabaseUrl, Location
from dkimctl.service.schema import passphrases, registrations
from dkimctl.text import install_beside, printable

_FILE_HINT = "check the file, its permissions and the free disk space, or use another data file"
_URL_HINT = "check that PostgreSQL runs, and that this user may connect to and change the database"
_OWN_DIRECTORY = "use a data file in a directory of your own"

_APPLICATION_ID = 0x444B494D  # "DKIM" in ASCII: distinguishes our files from other databases
_LAYOUT = 3  # has a revision; earlier versions of dkimctl refuse it, by this number, as newer
_LOOK = 0.1  # seconds between looks, while nothing is written, whether the file is in place
BUSY_SECONDS = 10  # other processes may write to the file meanwhile
_SQLITE_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -8192",  # KiB; the default of 2 MiB is too little for large indexes
    # Overwrite replaced data, such as a key that is now encrypted, in the file's free pages.
    "PRAGMA secure_delete = ON",
)
# The execution options of SQLAlchemy, by what a transaction is for. A lock requested in the middle
# of one fails at once, whatever the timeout.
_SQLITE_TRANSACTIONS: dict[str, dict[str, Any]] = {
    "reading": {},
    "snapshot": {"begin": ["BEGIN"]},
    "durable": {"begin": ["PRAGMA synchronous = FULL", "BEGIN IMMEDIATE"]},
    "quick": {"begin": ["PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE"]},
}

# In seconds, the last but one in milliseconds. The server limits statements; without these, nobody
# notices that its machine has gone.
_POSTGRESQL_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",  # whatever the database has: all we store is ASCII
}
_POSTGRESQL_TRANSACTIONS: dict[str, dict[str, Any]] = {
    "reading": {"isolation_level": "AUTOCOMMIT"},
    "snapshot": {
        "isolation_level": "REPEATABLE READ",
        "begin": ["SET LOCAL statement_timeout = 0"],
    },
    "durable": {},
    "quick": {"begin": ["SET LOCAL synchronous_commit = off"]},
}

_AT_ONCE = 1000  # keys in memory while all are encrypted
_HEADER = sa.func.substr(registrations.c.private_key, 1, len(PLAIN_HEADER), type_=sa.LargeBinary)
_ENCRYPTED = sa.select(registrations.c.selector).where(_HEADER != PLAIN_HEADER).limit(1)


class StoreUnavailable(UsageError):
    """The data cannot be used now; perhaps later."""


class Store:
    """Open data, to close after use. Each operation has a transaction, so threads can share it."""

    def __init__(self, name: str, engine: sa.Engine, path: Path | None = None) -> None:
        self.name = name  # that of the file or database, in messages
        self.path = path  # the data file; None: the data is in PostgreSQL
        self.purged_at = 0.0  # when expired tokens were deleted, in seconds since the epoch
        # Tells which passphrase the private keys have; None: they are not encrypted.
        self.marker: bytes | None = None
        self._fernet: Fernet | None = None
        self._engine = engine
        uses = _SQLITE_TRANSACTIONS if path else _POSTGRESQL_TRANSACTIONS
        self._engines = {use: engine.execution_options(**uses[use]) for use in uses}
        # SQLite lets one writer at a time, and has others look again every now and then: threads
        # that wait for a lock come in turn.
        lock: AbstractContextManager[object] = threading.Lock() if path else nullcontext()
        self._one_writer = lock
        self._identities = {path: files.file_identity(path)} if path else {}
        self._looked_at = 0.0

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[sa.Connection]:
        """A connection on which each statement sees what is committed. Raises UsageError.

        In a `snapshot`, to read much with, all of them see the same moment.
        """
        engine = self._engines["snapshot" if snapshot else "reading"]
        with self._translated(), engine.begin() as connection:
            yield connection
        if snapshot or time.monotonic() > self._looked_at + _LOOK:
            self._require_in_place()

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """A connection that may write; commits at the end of the block, or rolls back.

        What is not `durable` may be lost if the machine fails right after the block. Raises
        UsageError if that fails; IntegrityError is left to the caller.
        """
        engine = self._engines["durable" if durable else "quick"]
        with self._translated(), self._one_writer, engine.begin() as connection:
            yield connection
        self._require_in_place()

    def insert_new(self, table: sa.Table) -> sa.Insert:
        """An INSERT that leaves out rows whose primary key is taken."""
        if self.path:
            return sa.insert(table).prefix_with("OR IGNORE")
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table).on_conflict_do_nothing()

    def seal(self, private_key: bytes) -> bytes:
        """A private key (PKCS #8 in PEM) as it is stored: encrypted, if there is a passphrase."""
        return self._fernet.encrypt(private_key) if self._fernet else private_key

    def unseal(self, stored: bytes) -> bytes:
        """The private key, in PEM. Raises WrongPassphrase, also without the one it needs."""
        if stored.startswith(PLAIN_HEADER):
            return stored
        try:
            if self._fernet:
                return self._fernet.decrypt(stored)
        except InvalidToken:
            pass
        raise WrongPassphrase

    def require_same_passphrase(self, connection: sa.Connection) -> None:
        """Raise UsageError unless the data still has the marker it had when it was opened.

        Otherwise a key added now would be plain, or encrypted with another passphrase.
        """
        if _marker(connection) != self.marker:
            raise UsageError(
                f"the passphrase of the private keys in {self.name} has changed since it was "
                "opened",
                hint="stop, set DKIMCTL_SERVICE_PASSPHRASE to the new passphrase, and start again",
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except sa.exc.SQLAlchemyError as error:
            cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            raise StoreUnavailable(
                f"{self.name}: cannot use the service data: "
                f"{printable(' '.join(str(cause).split()))}",
                hint=_FILE_HINT if self.path else _URL_HINT,
            ) from cause

    def _require_in_place(self) -> None:
        """What is committed to a file that was moved is lost; what is read may be out of date."""
        self._looked_at = 0.0  # if it is not, the next read looks again
        for path, identity in self._identities.items():
            if files.file_identity(path) != identity:
                raise UsageError(
                    f"the data file {path} was moved or replaced while it was in use",
                    hint="put it back, or find out what moved it; then start the service again",
                )
        self._looked_at = time.monotonic()

    # Opening.

    def _prepare(self, passphrase: Passphrase | None, with_keys: bool) -> None:
        with self.writing() as connection:
            find_revision = self._file_revision if self.path else self._database_revision
            revision = find_revision(connection)
            schema.prepare(connection, revision, self.name)
            if self.path and revision != schema.REVISION:
                connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.exec_driver_sql(f"PRAGMA user_version = {_LAYOUT}")
            if passphrase is not None:
                self._adopt(connection, passphrase)
        if with_keys and passphrase is None:  # looks at all keys, while others may write
            with self.reading() as connection:
                if _marker(connection) is not None or connection.execute(_ENCRYPTED).first():
                    raise UsageError(
                        f"the private keys in {self.name} are encrypted with a passphrase",
                        hint="set DKIMCTL_SERVICE_PASSPHRASE to it",
                    )
        if self.path:
            self._use_write_ahead_log(self.path)
            if passphrase is not None:
                self._empty_write_ahead_log(self.path)
            # Only now: another program's database may be for others to read.
            files.refuse(files.file_fault(self.path, private=True), UsageError, hint=_OWN_DIRECTORY)

    def _database_revision(self, connection: sa.Connection) -> str | None:
        """The revision of the tables, None without any. Raises UsageError for those of others."""
        connection.execute(sa.text("SET LOCAL statement_timeout = 0"))  # for large tables
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_APPLICATION_ID})"))
        tables = set(sa.inspect(connection).get_table_names())
        if schema.version.name in tables:
            return schema.revision_of(connection)
        if taken := tables & set(schema.metadata.tables):
            raise UsageError(
                f"{self.name} has tables of another program: {', '.join(sorted(taken))}",
                hint="use a database of its own for the service",
            )
        return None

    def _file_revision(self, connection: sa.Connection) -> str | None:
        """The same of a file, with "" before there were revisions."""
        ask = connection.exec_driver_sql
        application_id = ask("PRAGMA application_id").scalar_one()
        layout = ask("PRAGMA user_version").scalar_one()
        tables = ask("SELECT count(*) FROM sqlite_master").scalar_one()
        if not (tables or application_id or layout):  # a new file
            return None
        if application_id != _APPLICATION_ID:
            raise UsageError(
                f"{self.path} is a database of another program",
                hint="use a data file of the service, or a path that does not exist yet",
            )
        if layout == _LAYOUT:
            return schema.revision_of(connection)
        return "" if layout < _LAYOUT else "newer"

    def _use_write_ahead_log(self, path: Path) -> None:
        """Let readers continue during a write.

        SQLite changes the mode only outside a transaction and while no other process uses the
        file. Without the log the data is as safe, and the next process to open it tries again.
        """
        with suppress(sa.exc.OperationalError), self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            connection.exec_driver_sql("PRAGMA user_version")  # opens the log, which then stays
            for suffix in ("wal", "shm"):
                file = _side_file(path, suffix)
                self._identities[file] = files.file_identity(file)

    def _empty_write_ahead_log(self, path: Path) -> None:
        """Remove plain keys that were replaced from the log as well.

        Raises UsageError if another process prevents that and plain keys remain: with a passphrase
        no key may be readable without it, and a warning would be lost once the server runs.
        """
        with self._translated(), self._engine.connect() as connection:
            # `main`, since otherwise SQLite includes the database of temporary tables.
            result = connection.exec_driver_sql("PRAGMA main.wal_checkpoint(TRUNCATE)").one()
        log = _side_file(path, "wal")
        if result.busy and (_holds_plain_key(log) or _holds_plain_key(path)):
            raise UsageError(
                f"{path} and {log.name} hold unencrypted private keys, and are in use",
                hint="stop other programs that use the file, such as a backup, and start again",
            )

    # The passphrase of all private keys: the first one that the data is opened with.

    def _adopt(self, connection: sa.Connection, passphrase: Passphrase) -> None:
        """Have the keys encrypted with the passphrase, those of before as well.

        The connection is a writing one, so that one of several processes decides. Raises UsageError
        if they are encrypted with another passphrase.
        """
        if not self.path:  # others wait before they look whether the marker has changed
            connection.execute(sa.text("LOCK TABLE passphrases IN ACCESS EXCLUSIVE MODE"))
        marker = _marker(connection)
        try:
            if marker is not None and not marker.startswith(b"-----BEGIN"):
                self.marker, self._fernet = marker, passphrase.unlock(marker)
                return
            if marker is not None:  # before revision 0003
                passphrase.decrypt_old(marker)
            self.marker = passphrase.new_marker()
            self._fernet = passphrase.unlock(self.marker)
            self._encrypt_all(connection, passphrase)
        except WrongPassphrase:
            raise UsageError(
                f"the private keys in {self.name} are encrypted with another passphrase",
                hint="set DKIMCTL_SERVICE_PASSPHRASE to the passphrase they were encrypted with",
            ) from None
        connection.execute(sa.delete(passphrases))
        connection.execute(sa.insert(passphrases).values(marker=self.marker))

    def _encrypt_all(self, connection: sa.Connection, passphrase: Passphrase) -> None:
        """Encrypt the keys that are plain, or encrypted as before revision 0003."""
        domain, selector = registrations.c.sign_domain, registrations.c.selector
        key_rows = sa.select(domain, selector, registrations.c.private_key)
        some = key_rows.order_by(domain, selector).limit(_AT_ONCE)
        encrypt = (
            sa.update(registrations)
            .where(domain == sa.bindparam("domain"), selector == sa.bindparam("label"))
            .values(private_key=sa.bindparam("sealed"))
        )
        last = ("", "")
        while rows := connection.execute(some.where(sa.tuple_(domain, selector) > last)).all():
            changes = []
            for name, label, key in rows:
                pem = key if key.startswith(PLAIN_HEADER) else passphrase.decrypt_old(key)
                changes.append({"domain": name, "label": label, "sealed": self.seal(pem)})
                last = (name, label)
            connection.execute(encrypt, changes)


def open_store(
    location: Location, passphrase: Passphrase | None = None, *, with_keys: bool = False
) -> Store:
    """Open the data; create a missing file or missing tables, and upgrade old ones.

    With a `passphrase` all private keys are encrypted, including those already there. Raises
    UsageError if the data cannot be used: of another program or a newer version, with keys
    encrypted with another passphrase, or to be used `with_keys` without their passphrase; a file
    that is not safe from other users, not readable and writable, or locked for 10 seconds.
    """
    if isinstance(location, DatabaseUrl):
        try:
            engine = _engine(
                sa.make_url(location.text).set(drivername="postgresql+psycopg"),
                _POSTGRESQL_CONNECTION,
                ["SET statement_timeout = '15s'"],
                pool_pre_ping=True,  # the database may have been restarted
            )
        except ModuleNotFoundError as error:
            raise UsageError(
                f"PostgreSQL cannot be used (no module {error.name})",
                hint=install_beside("'psycopg[binary]'"),
            ) from None
        except (sa.exc.ArgumentError, ValueError):  # their texts quote the URL, with a password
            raise UsageError(
                f"the URL of the database {location.name} is invalid",
                hint="write it as postgresql+psycopg://USER@HOST/DATABASE",
            ) from None
        store = Store(location.name, engine)
    else:
        _require_file(location)
        url = sa.URL.create("sqlite", database=str(location.absolute()))
        # Without a level of isolation, the driver leaves it to `_engine` to begin transactions.
        connecting = {"timeout": BUSY_SECONDS, "isolation_level": None}
        engine = _engine(url, connecting, _SQLITE_SETTINGS)
        store = Store(str(location), engine, location)
    try:
        store._prepare(passphrase, with_keys)
    except BaseException:
        store.close()
        raise
    return store


def open_key_store(location: Location) -> Store:
    """Open the data to make keys: with the passphrase of the environment. Raises UsageError."""
    # Not in a local variable, which an error report might show.
    if os.environ.get("DKIMCTL_SERVICE_PASSPHRASE"):
        return open_store(
            location, Passphrase(os.fsencode(os.environ["DKIMCTL_SERVICE_PASSPHRASE"]))
        )
    return open_store(location, with_keys=True)


def _marker(connection: sa.Connection) -> bytes | None:
    return connection.execute(sa.select(passphrases.c.marker)).scalar_one_or_none()


def _engine(
    url: sa.URL, connect_args: dict[str, Any], settings: Iterable[str], **options: Any
) -> sa.Engine:
    engine = sa.create_engine(
        url,
        connect_args=connect_args,
        hide_parameters=True,  # they hold hashes and private keys
        # The connections of a process, which its threads share, since transactions are short:
        # SQLite takes memory and files for each, and PostgreSQL allows 100 by default.
        pool_size=8,
        max_overflow=0,
        pool_timeout=10,  # seconds that a thread waits for one
        **options,
    )

    def configure(dbapi_connection: Any, _record: object) -> None:
        for statement in settings:
            dbapi_connection.execute(statement)
        dbapi_connection.commit()

    def begin(connection: sa.Connection) -> None:
        for statement in connection.get_execution_options().get("begin", ()):
            connection.exec_driver_sql(statement)

    sa.event.listen(engine, "connect", configure)
    sa.event.listen(engine, "begin", begin)
    return engine


# The files of SQLite, which are ours alone and hold no plain key.


def _side_file(path: Path, suffix: str) -> Path:
    """One of the files that SQLite has beside a data file: `wal`, `shm` or `journal`."""
    return path.with_name(f"{path.name}-{suffix}")


def _require_file(path: Path) -> None:
    """Create a missing file; refuse what others can change, or this user cannot write."""
    side_files = (_side_file(path, suffix) for suffix in ("wal", "shm", "journal"))
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a directory", hint="name a data file in it")
        files.prepare_directory(path.parent)
        fault = files.fault_of(path, *side_files, in_own_group=True)
        of_another = files.run_as(fault.owner) if fault and fault.owner else ""
        files.refuse(fault, UsageError, hint=of_another or _OWN_DIRECTORY)
        if not path.exists():
            path.touch(mode=0o600)  # SQLite creates its side files with the same mode
            path.chmod(0o600)  # the umask may have removed more
    except OSError as error:
        raise UsageError(
            f"{path}: cannot create the service data file: {error.strerror}",
            hint=files.access_hint(path, _FILE_HINT),
        ) from error
    # SQLite would open it read-only, and fail at the first request that writes.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UsageError(
            f"{path}: the service data file is not writable",
            hint=files.access_hint(path, _FILE_HINT),
        )


def _holds_plain_key(path: Path) -> bool:
    """Whether an unencrypted key, or a remainder of one, is in the file."""
    end = b""
    with suppress(FileNotFoundError), path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if PLAIN_HEADER in end + chunk:
                return True
            end = chunk[-len(PLAIN_HEADER) :]
    return False
