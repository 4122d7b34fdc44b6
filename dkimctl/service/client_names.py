"""The client IDs in a data file, for completion in a shell: without SQLAlchemy, which is slow."""

from __future__ import annotations

from pathlib import Path

from dkimctl.system.databases import peeking

_CLIENTS = "SELECT client_id, state FROM clients WHERE state != 'deleted' ORDER BY client_id"


def read_client_states(path: Path) -> list[tuple[str, str]]:
    """The ID and state of each client that is not deleted.

    Nothing is created, and nothing waited for. Raises OSError and sqlite3.Error.
    """
    with peeking(path) as connection:
        return list(connection.execute(_CLIENTS))
