"""A PostgreSQL server on loopback, with databases that are quickly made empty."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import create_engine, text

from dkimctl.service.database import open_store
from dkimctl.service.location import DatabaseUrl, read_location
from dkimctl.service.schema import metadata
from ports import free_port

USER = "dkimctl"
_SETTINGS = {
    "fsync": "off",  # the machine does not fail within a test
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
}
_LIMIT = 30.0


class PostgresServer:
    """A server with its data in `directory`, which a restart keeps."""

    def __init__(self, directory: Path, need: Callable[[str], str], **settings: str) -> None:
        self.port = free_port()
        self._data = directory / "data"
        self._log = directory / "log"
        self._need = need
        self._settings = _SETTINGS | {"port": str(self.port)} | settings
        self._process: subprocess.Popen[bytes] | None = None
        words = [need("initdb"), "-D", str(self._data), "-U", USER, "--auth=trust", "--no-sync"]
        subprocess.run(_as_user([*words, "--encoding=UTF8", "--locale=C"]), check=True,
                       capture_output=True, cwd=directory)  # fmt: skip

    def start(self) -> None:
        words = [self._need("postgres"), "-D", str(self._data)]
        for name, value in self._settings.items():
            words += ["-c", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(_as_user(words), stdout=log, stderr=log,
                                             cwd=self._data.parent)  # fmt: skip
        deadline = time.monotonic() + _LIMIT
        while not self._answers():
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def stop(self, *, crash: bool = False) -> None:
        """Stop it; `crash` without writing what is in memory only."""
        mode = "immediate" if crash else "fast"
        words = [self._need("pg_ctl"), "stop", "-D", str(self._data), "-m", mode]
        subprocess.run(_as_user(words), check=True, capture_output=True, cwd=self._data.parent)
        assert self._process is not None
        self._process.wait(_LIMIT)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> DatabaseUrl:
        self.execute(f"CREATE DATABASE {name}")
        location = read_location(self.url(name))
        assert isinstance(location, DatabaseUrl)
        return location

    def execute(self, statement: str, database: str = "postgres") -> None:
        engine = create_engine(self.url(database), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(statement))
        finally:
            engine.dispose()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        words = [self._need("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(words, check=False).returncode == 0


@contextlib.contextmanager
def serving_postgresql(need: Callable[[str], str], **settings: str) -> Iterator[PostgresServer]:
    """A server that runs within the block. `need` gives the path of a program."""
    need("initdb")
    directory = Path(tempfile.mkdtemp(prefix="dkimctl-postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres")
    try:
        server = PostgresServer(directory, need, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop(crash=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def emptied(server: PostgresServer, name: str) -> DatabaseUrl:
    """The database of that name with empty tables."""
    location = read_location(server.url(name))
    assert isinstance(location, DatabaseUrl)
    tables = ", ".join(metadata.tables)
    try:
        server.execute(f"TRUNCATE {tables} RESTART IDENTITY CASCADE", name)
    except Exception:  # noqa: BLE001 - it is not there yet
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.create_database(name)
        open_store(location).close()
    return location


def ledger_url(server: PostgresServer, name: str = "ledger") -> str:
    """The URL of a database for a ledger, without tables."""
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute(f"CREATE DATABASE {name}")
    return f"postgresql://{USER}@127.0.0.1:{server.port}/{name}"


def _as_user(words: Sequence[str]) -> list[str]:
    """The command by a user that PostgreSQL accepts: it refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else list(words)
