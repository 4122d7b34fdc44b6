"""The client IDs in a data file, for completion in a shell: without SQLAlchemy, which is slow."""

from __future__ import annotations

from pathlib import Path

from dkimctl.system.databases import peeking

_CLIENTS = "SELECT client_id FROM clients WHERE state != 'deleted' ORDER BY client_id"


def read_client_ids(path: Path) -> list[str]:
    """The ID of each client that is not deleted.

    Nothing is created, and nothing waited for. Raises OSError and sqlite3.Error.
    """
    with peeking(path) as connection:
        return [client_id for (client_id,) in connection.execute(_CLIENTS)]
