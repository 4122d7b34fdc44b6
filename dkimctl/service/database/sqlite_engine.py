"""Connections to a SQLite file, and the transactions that begin on them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError

from dkimctl.system.databases import sqlite_uri

BUSY_SECONDS = 10  # other processes may write meanwhile
_CACHE = 8 * 1024  # KiB a connection; the default of 2 MiB is too little for large indexes


def open_engine(path: Path, *, is_fixed: bool = False) -> Engine:
    """An engine for the file; if it `is_fixed`, nobody changes it meanwhile, and neither do we."""
    url = URL.create("sqlite", database=str(path.absolute()))
    if is_fixed:
        query = {"mode": "ro", "immutable": "1", "uri": "true"}
        uri = sqlite_uri(path.absolute().as_uri())
        url = URL.create("sqlite", database=uri, query=query)
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS},
        hide_parameters=True,  # they hold hashes and private keys
        max_overflow=-1,
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.isolation_level = None  # transactions begin in _begin, not in the driver
    dbapi_connection.execute("PRAGMA foreign_keys = ON")
    dbapi_connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    # Overwrite replaced data, such as a key that is now encrypted, in the file's free pages.
    dbapi_connection.execute("PRAGMA secure_delete = ON")


def _begin(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    try:
        for statement in connection.get_execution_options().get("begin", ()):
            driver.execute(statement)  # SQLAlchemy takes longer than SQLite
    except sqlite3.Error as error:
        raise OperationalError(None, None, error) from error


def pragma(connection: Connection, name: str) -> int:
    """The value of a setting of the file or the connection."""
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def set_pragma(connection: Connection, name: str, value: int) -> None:
    """Change a setting of the file or the connection."""
    connection.exec_driver_sql(f"PRAGMA {name} = {value}")
