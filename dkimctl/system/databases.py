"""Looking into SQLite files that may be in use, without any effect on them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def sqlite_uri(uri: str) -> str:
    """A file URI as SQLite reads it: without a host, so a Windows share is part of the path."""
    return uri if uri.startswith("file:///") else uri.replace("file:", "file://", 1)


@contextmanager
def peeking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that creates no file and never waits.

    It takes no lock either, unless another process has the file open for writing. Raises
    sqlite3.Error and OSError.
    """
    if not path.is_file():  # reading a named pipe would wait
        raise FileNotFoundError(path)
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    # `immutable` ignores the log; without it, SQLite would create a missing index.
    has_log = index.exists() and log.exists() and log.stat().st_size > 0
    parameters = "mode=ro" if has_log else "mode=ro&immutable=1"
    uri = f"{sqlite_uri(path.absolute().as_uri())}?{parameters}"
    with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
        yield connection
