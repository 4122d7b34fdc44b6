"""The service's data in PostgreSQL, for services of several machines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    String,
    Table,
    Text,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    text,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import ArgumentError

from dkimctl.errors import UsageError
from dkimctl.service.database import upgrading
from dkimctl.service.database.location import DatabaseUrl
from dkimctl.service.database.schema import metadata
from dkimctl.service.database.store import Store

if TYPE_CHECKING:
    from dkimctl.service.keys.encryption import PrivateKeyEncryptor

# In seconds, the last but one in milliseconds. The server limits statements; without these, nobody
# notices that its machine has gone.
_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",  # whatever the database has: all we store is ASCII
}
_STATEMENT_SECONDS = 15
_CONNECTIONS = 8  # a process, of the 100 that PostgreSQL allows by default; transactions are short
_WAIT_SECONDS = 10  # for one of them
_UPGRADE_LOCK = 0x444B494D  # any number that other programs do not use


class PostgresStore(Store):
    """An open PostgreSQL database."""

    hint = "check that PostgreSQL runs, and that this user may connect to and change the database"

    def __init__(
        self, name: str, engine: Engine, encryptor: PrivateKeyEncryptor | None = None
    ) -> None:
        super().__init__(name, engine, encryptor)
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._quick = engine.execution_options(is_quick=True)
        self._long = engine.execution_options(isolation_level="REPEATABLE READ", is_long=True)

    @classmethod
    def open(cls, url: DatabaseUrl, encryptor: PrivateKeyEncryptor | None = None) -> Self:
        """Connect, and create or upgrade the tables.

        With an `encryptor` all private keys are encrypted, including those already in the
        database. Raises UsageError if the database cannot be used, has tables of another program or
        a newer version, or keys encrypted with another passphrase.
        """
        store = cls(url.name, _create_engine(url), encryptor)
        try:
            store._prepare()
        except BaseException:
            store.close()
            raise
        return store

    def lock(self, connection: Connection, table: Table) -> None:
        connection.execute(text(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE"))

    def insert_new(self, table: Table) -> Insert:
        return insert(table).on_conflict_do_nothing()

    @staticmethod
    def table_of_names() -> FromClause:
        arrays = [bindparam(name, type_=ARRAY(String)) for name in ("domains", "selectors")]
        return func.unnest(*arrays).table_valued("sign_domain", "selector").render_derived()

    @staticmethod
    def json_rows(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[str | None]:
        return cast(func.json_agg(func.json_build_array(*columns)), Text)

    def name_parameters(self, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
        return {"domains": [name[0] for name in names], "selectors": [name[1] for name in names]}

    def _read(self) -> AbstractContextManager[Connection]:
        return self._reading.connect()

    def _snapshot(self) -> AbstractContextManager[Connection]:
        return self._long.begin()

    def _write(self, durable: bool) -> AbstractContextManager[Connection]:
        return (self._engine if durable else self._quick).begin()

    def _prepare(self) -> None:
        with self.writing() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))  # for large tables
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
            if upgrading.has_revision(connection):
                upgrading.require_current(connection, self.name, is_unversioned=False)
            else:
                self._require_unused(connection)
                upgrading.create(connection)
            if self.encryptor is not None:
                from dkimctl.service.keys.passphrase import adopt_passphrase

                self.marker = adopt_passphrase(self, connection, self.encryptor)

    def _require_unused(self, connection: Connection) -> None:
        taken = set(inspect(connection).get_table_names()) & set(metadata.tables)
        if taken:
            raise UsageError(
                f"{self.name} has tables of another program: {', '.join(sorted(taken))}",
                hint="use a database of its own for the service",
            )


def _create_engine(url: DatabaseUrl) -> Engine:
    try:
        parsed = make_url(url.text).set(drivername="postgresql+psycopg")
        engine = create_engine(
            parsed,
            connect_args=_CONNECTION,
            hide_parameters=True,  # they hold hashes and private keys
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
            pool_pre_ping=True,  # the database may have been restarted
        )
    except ModuleNotFoundError as error:
        raise UsageError(
            f"PostgreSQL cannot be used (no module {error.name})",
            hint="run `pip install 'dkimctl[postgres]'`",
        ) from None
    except (ArgumentError, ValueError):  # their texts quote the URL, with a password
        raise UsageError(
            f"the URL of the database {url.name} is invalid",
            hint="write it as postgresql+psycopg://USER@HOST/DATABASE",
        ) from None
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.execute(f"SET statement_timeout = '{_STATEMENT_SECONDS}s'")
    dbapi_connection.commit()


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("is_quick"):
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
    if options.get("is_long"):
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
