"""Where the service's data is: a file, or a PostgreSQL database at a URL; without SQLAlchemy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from dkimctl.errors import UsageError, naming
from dkimctl.files import data_dir, peeking

_VARIABLE = "DKIMCTL_SERVICE_DATABASE"
_SECRETS = {"password", "sslpassword"}
_EXAMPLE = "write it as postgresql+psycopg://USER@HOST/DATABASE"


class DatabaseUrl(NamedTuple):
    """The URL of a PostgreSQL database; `name` shows it without user and password."""

    text: str
    name: str
    has_password: bool

    def __repr__(self) -> str:
        return f"DatabaseUrl({self.name})"


Location = Path | DatabaseUrl


def default_location(environ: Mapping[str, str] = os.environ) -> Location:
    """Where the environment says, or the user's data file. Raises UsageError."""
    if text := environ.get(_VARIABLE):
        with naming(_VARIABLE):
            return read_location(text)
    return data_dir() / "service.db"


def read_location(text: str) -> Location:
    """The path of a data file, or a URL. Raises UsageError for a URL that is not one of ours."""
    scheme, is_url, _ = text.partition("://")
    if not is_url:
        return Path(text)
    if scheme not in ("postgresql", "postgresql+psycopg"):
        raise UsageError(
            "the database is neither a file nor a URL of PostgreSQL",  # it may hold a password
            hint=f"{_EXAMPLE}, or name a file",
        )
    try:
        parts = urlsplit(text)
        host, port, query = parts.hostname or "", parts.port, parse_qs(parts.query)
        if parts.fragment or "@" in parts.path + parts.query:
            raise ValueError
    except ValueError:
        raise UsageError(
            "the URL of the database is invalid",
            hint=f"{_EXAMPLE}, and / ? # @ in a password as %2F %3F %23 %40",
        ) from None
    host = host or "".join(query.get("host", []))
    shown = f"postgresql://{host}{f':{port}' if port else ''}{parts.path}"
    return DatabaseUrl(text, shown, parts.password is not None or not _SECRETS.isdisjoint(query))


def read_client_ids(path: Path) -> list[str]:
    """The IDs of clients that are not deleted, for completion. Raises OSError and sqlite3.Error."""
    query = "SELECT client_id FROM clients WHERE state != 'deleted' ORDER BY client_id"
    with peeking(path) as connection:
        return [client_id for (client_id,) in connection.execute(query)]
