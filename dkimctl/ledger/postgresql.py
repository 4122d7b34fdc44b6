"""The ledger in a PostgreSQL database, which the machines of a team share.

A run reads and writes on one connection, which also holds its locks: if that is lost, the locks
are too, and nothing can be written, or sent, as if they were still there.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from dkimctl.errors import LedgerError, LedgerUnavailable
from dkimctl.ledger.account_lock import UNKNOWN, Purpose, waited_too_long
from dkimctl.ledger.intents import select_open_requests
from dkimctl.ledger.tables import ADD_ACCOUNT, STEPS, find_account, require_row_id
from dkimctl.models import NOBODY, Actor
from dkimctl.text import install_beside, printable

# In seconds, the last in milliseconds: who has lost the server learns it soon.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
}
# The server, too, soon releases the locks of a machine that is gone; that of a run that waits for
# DNS is idle for hours.
_SETTINGS = {
    "search_path": "dkimctl",
    "synchronous_commit": "on",
    "default_transaction_isolation": r"read\ committed",
    "statement_timeout": "60s",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
# The system's CAs: the OpenSSL of psycopg's wheels does not know where they are.
_CAS = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
)  # fmt: skip
_WRITING = 0x444B494D  # advisory locks: of one writer at a time, as in a file; no hash is as small
_POLL = 0.2  # seconds between two looks whether a lock is free
_VERSION = len(STEPS)
# SQLite compares names without regard to case by its own collation of that name.
_FIRST_TABLES = """
CREATE SCHEMA IF NOT EXISTS dkimctl;
CREATE COLLATION IF NOT EXISTS dkimctl.nocase
  (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE IF NOT EXISTS dkimctl.version (number bigint NOT NULL)
"""
_ORDER = 'ORDER BY lower(sign_domain) COLLATE "C", lower(selector) COLLATE "C"'
_HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND (classid::bigint << 32) | objid::bigint = ?
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class Database:
    """A ledger's database; connects when a ledger in it is opened, or a lock is taken."""

    def __init__(self, url: str, actor: Actor = NOBODY) -> None:
        self.url = url  # without a password
        self._who = f"{actor.user}@{actor.machine}"
        self._connection: Any = None  # that of psycopg, once it is open
        self._locks = 0  # that the connection holds

    def __str__(self) -> str:
        return self.url

    def open(self, base_url: str, client_id: str, *, for_writing: bool) -> int:
        """Connect, unless that is done, and make missing tables; returns the account's ID."""
        with self.translating():
            self._connect()
            if for_writing:  # also if it is there, so that the server says if it is read-only
                with self.transaction():
                    self.execute(ADD_ACCOUNT, (base_url, client_id))
            return find_account(self, base_url, client_id)

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """End the use of one ledger: there may be others, and locks, on the connection."""

    @contextlib.contextmanager
    def lock(
        self,
        *,
        base_url: str,
        client_id: str,
        on_wait: Callable[[str], None],
        purpose: Purpose,
        patience: float,
    ) -> Iterator[None]:
        """Hold a lock of one account; see `account_lock`."""
        account = hashlib.sha256(json.dumps([purpose, base_url, client_id]).encode()).digest()
        number = int.from_bytes(account[:8], "big", signed=True)
        with self.translating():
            self._connect()
            until, is_waiting = time.monotonic() + patience, False
            while not self.execute("SELECT pg_try_advisory_lock(?)", (number,)).fetchone()[0]:
                if not is_waiting:
                    is_waiting = True
                    on_wait(self._find_holder(number))
                if time.monotonic() > until:
                    raise waited_too_long(self._find_holder(number), patience)
                time.sleep(_POLL)
        self._locks += 1
        try:
            yield
        finally:
            self._locks -= 1
            with contextlib.suppress(LedgerError), self.translating():
                self.execute("SELECT pg_advisory_unlock(?)", (number,))

    # What a ledger uses: see `SqliteStore`.

    def execute(self, query: str, values: Sequence[object] = ()) -> Any:
        return self._connection.execute(_translated(query), _without_nul(values))

    def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.cursor().executemany(_translated(statement), map(_without_nul, rows))

    def select_each(self, query: str, rows: Iterable[Sequence[object]]) -> list[Any]:
        cursor, found = self._connection.cursor(), []
        cursor.executemany(_translated(query), map(_without_nul, rows), returning=True)
        is_more: bool | None = cursor.pgresult is not None  # None: there were no `rows`
        while is_more:
            found.append(cursor.fetchone())
            is_more = cursor.nextset()
        return found

    def insert(self, statement: str, values: Sequence[object]) -> int:
        return require_row_id(self.execute(f"{statement} RETURNING id", values).fetchone()[0])

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        # Statements wait for each other, but not this program for them; the end waits for all.
        with self._connection.pipeline(), self._connection.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (_WRITING,))
            yield

    def verify(self, account_id: int) -> None:
        with self._connection.transaction(force_rollback=True):
            self.execute("UPDATE version SET number = number")  # whether it is possible
        list(select_open_requests(self, account_id))  # decodes all

    check = verify

    def find_quarantined(self) -> Path | None:
        return None

    def require_disk_space(self, entries: int) -> None:
        """That of the server is not known here; what it cannot store is not sent."""

    @contextlib.contextmanager
    def translating(self) -> Iterator[None]:
        try:
            import psycopg
        except ImportError as error:  # also if libpq is missing
            raise LedgerError(
                f"the ledger {self} needs psycopg: {error}",
                hint=install_beside("'psycopg[binary]'"),
            ) from None
        try:
            yield
        except (psycopg.Error, sqlite3.DatabaseError, OSError, UnicodeError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """Raise a LedgerError for an error of the driver, or of `tables`."""
        what = f"cannot use the ledger {self}"
        hint = "run the same command again; if it fails again, check that this user may change the "
        hint += "database, that this is the primary server, and that its disk is not full"
        state = str(getattr(error, "sqlstate", ""))
        if self._connection is None:
            what = f"cannot connect to the ledger {self}"
            hint = "check the URL, that PostgreSQL 14 or later runs there, and that it lets this "
            hint += "user in; a password is taken from ~/.pgpass or PGPASSWORD"
        elif self._connection.closed or state.startswith(("08", "57P")):
            what = f"the connection to the ledger {self} was lost"
            hint = "run the same command again when the server answers: it settles the requests "
            hint += "whose answers are not in the ledger"
        elif isinstance(error, sqlite3.DatabaseError):
            what, hint = f"the ledger {self} is damaged", "restore a backup of the database"
        reason = "; ".join(
            " ".join(each.split()) for each in str(error).splitlines() if each.strip()
        )
        raise LedgerUnavailable(f"{what}: {reason}", hint=hint) from error

    # Connecting.

    def _connect(self) -> None:
        """Connect, or again if the connection was lost; but never while locks should be held."""
        import psycopg

        if self._connection is not None:
            if self._locks:
                return
            with contextlib.suppress(psycopg.OperationalError):
                self.execute("SELECT 1")
                return
        self._connection = None
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # what fails is raised as well
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(self.url)
        own = os.path.expanduser("~/.postgresql/root.crt")  # noqa: PTH111 - there may be no home
        if given.get("sslmode") == "verify-full" and not Path(own).exists():
            files = (os.environ.get("SSL_CERT_FILE", ""), *_CAS)
            cas = os.environ.get("PGSSLROOTCERT") or next(filter(os.path.exists, files), "system")
            given.setdefault("sslrootcert", cas)
        # See `_find_holder`; the server cuts it to 63 bytes.
        name = f"dkimctl {os.getpid()} {datetime.now(UTC):%Y-%m-%dT%H:%MZ} {self._who}"
        connection = psycopg.connect(
            **(given | _CONNECTION), options=options, autocommit=True,
            application_name=name, cursor_factory=psycopg.RawCursor,
        )  # fmt: skip
        self._connection = connection
        try:
            with self.translating():
                self._prepare()
        except BaseException:
            connection.close()
            raise

    def _prepare(self) -> None:
        """Make the tables, or upgrade those of an older version, in a database that fits."""
        info = self._connection.info
        if (encoding := info.parameter_status("server_encoding")) != "UTF8":
            raise LedgerError(
                f"the database of the ledger {self} has the encoding {encoding}",
                hint="create it again: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
            )
        if self.execute("SELECT pg_backend_pid()").fetchone()[0] != info.backend_pid:
            raise LedgerError(
                f"the ledger {self} is behind a connection pooler, where locks do not hold",
                hint="connect to PostgreSQL itself",
            )
        if self._version() == _VERSION:
            return
        with self._connection.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (_WRITING,))
            if (version := self._version()) == _VERSION:
                return
            for step in STEPS[version:] if version else (_FIRST_TABLES, *STEPS):
                for statement in step.split(";"):
                    # New tables have no rows that a step could upgrade.
                    if version or not statement.lstrip().startswith("INSERT"):
                        identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
                        created = statement.replace("INTEGER PRIMARY KEY", identity)
                        created = created.replace(" WITHOUT ROWID", "").replace("INTEGER", "bigint")
                        self.execute(created)
            self.execute("DELETE FROM version")
            self.execute("INSERT INTO version VALUES (?)", (_VERSION,))

    def _version(self) -> int:
        """The version of the tables, 0 without any. Raises LedgerError if newer than ours."""
        # Not `to_regclass`, which does not see what another made during this transaction.
        query = "SELECT FROM pg_tables WHERE schemaname = 'dkimctl' AND tablename = 'version'"
        if self.execute(query).fetchone() is None:
            return 0
        query = "SELECT coalesce(max(number), 0) FROM dkimctl.version"
        [version] = self.execute(query).fetchone()
        if version > _VERSION:
            raise LedgerError(
                f"the ledger {self} was written by a newer dkimctl", hint="upgrade dkimctl"
            )
        return int(version)

    def _find_holder(self, number: int) -> str:
        """Who holds a lock, as the name of its connection says."""
        row = self.execute(_HOLDER, (number,)).fetchone()
        name = printable(row[0] if row else "").split(" ", 3)
        return "process {1} of {3}, since {2}".format(*name) if len(name) == 4 else UNKNOWN


@lru_cache
def _translated(query: str) -> str:
    """SQL of ledgers as PostgreSQL takes it."""
    query = query.replace("ORDER BY sign_domain, selector", _ORDER)
    query = query.replace(" AS BLOB)", " AS text)")
    numbers = itertools.count(1)
    return re.sub(r"\?(\d*)", lambda match: f"${match[1] or next(numbers)}", query)


def _without_nul(values: Sequence[object]) -> list[object]:
    """PostgreSQL has no text with NUL, which the service may answer."""
    return [
        value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
        for value in values
    ]
