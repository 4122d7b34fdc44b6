"""The service's data, in a SQLite file or in PostgreSQL, safe for many threads and processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Insert,
    Select,
    Table,
    select,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from dkimctl.errors import UsageError
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.service.keys.encryption import PrivateKeyEncryptor


class StoreUnavailable(UsageError):
    """The data cannot be used now; perhaps later."""


class Store(ABC):
    """Open data. Close it after use.

    Every operation opens its own transaction, so one store serves any number of threads. `name`
    is that of the file or database in messages. `marker` tells which passphrase the private keys
    have, None if they are not encrypted.
    """

    hint: str
    """What a user can do if the data cannot be used."""

    def __init__(
        self, name: str, engine: Engine, encryptor: PrivateKeyEncryptor | None = None
    ) -> None:
        self.name = name
        self.encryptor = encryptor
        self.marker: bytes | None = None
        self._engine = engine

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection on which each statement sees what is committed. Raises UsageError."""
        with self._translate_errors(), self._read() as connection:
            yield connection

    def first(self, query: Select[Any], parameters: Mapping[str, Any]) -> Sequence[Any] | None:
        """The first row of the query's result, or None. Raises UsageError.

        The query must be a constant of its module, or cached: it is compiled once, and kept.
        """
        with self.reading() as connection:
            return connection.execute(query, parameters).first()

    def add(self, statement: Insert, row: Mapping[str, Any]) -> None:
        """Insert one row; the statement must be a constant, as for `first`.

        It may be lost if the machine fails right afterwards. Raises UsageError; IntegrityError is
        left to the caller.
        """
        with self.writing(durable=False) as connection:
            connection.execute(statement, row)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection to read much with: all its queries see the same moment.

        Raises UsageError if that fails.
        """
        with self._translate_errors(), self._snapshot() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """A connection that may write; commits at the end of the block, or rolls back.

        What is not `durable` may be lost if the machine fails right after the block. Raises
        UsageError if that fails; IntegrityError is left to the caller.
        """
        with self._translate_errors(), self._write(durable) as connection:
            yield connection

    def seal(self, private_key: bytes) -> bytes:
        """A private key (PKCS #8 in PEM) as it is stored: encrypted, if there is a passphrase."""
        if self.encryptor is None or self.encryptor.is_encrypted(private_key):
            return private_key
        return self.encryptor.encrypt(private_key)

    def require_available(self) -> None:
        """Raise UsageError unless the data can be read."""
        with self.reading() as connection:
            connection.execute(select(1))

    @abstractmethod
    def lock(self, connection: Connection, table: Table) -> None:
        """Have other transactions wait before they read or write `table`, until this one ends."""

    @abstractmethod
    def insert_new(self, table: Table) -> Insert:
        """An INSERT that leaves out rows whose primary key is taken."""

    @staticmethod
    @abstractmethod
    def table_of_names() -> FromClause:
        """A table with the columns `sign_domain` and `selector`, from `name_parameters`."""

    @staticmethod
    @abstractmethod
    def json_rows(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[str | None]:
        """All rows as the text of one JSON array of arrays; perhaps NULL if there are none."""

    @abstractmethod
    def name_parameters(self, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """The parameters of a statement with a `table_of_names`."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self, durable: bool) -> AbstractContextManager[Connection]: ...

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StoreUnavailable(
                f"{self.name}: cannot use the service data: {_one_line(cause)}", hint=self.hint
            ) from cause


def _one_line(error: object) -> str:
    return printable(" ".join(str(error).split()))
