"""Opening the service's data, wherever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkimctl.service.database.location import DatabaseUrl, Location
from dkimctl.service.database.store import Store

if TYPE_CHECKING:
    from dkimctl.service.keys.encryption import PrivateKeyEncryptor


def open_store(location: Location, encryptor: PrivateKeyEncryptor | None = None) -> Store:
    """Open the data; create a missing file or missing tables, and upgrade old ones.

    With an `encryptor` all private keys are encrypted, including those already there. Raises
    UsageError if the data cannot be used.
    """
    if isinstance(location, DatabaseUrl):
        from dkimctl.service.database.postgresql import PostgresStore

        return PostgresStore.open(location, encryptor)
    from dkimctl.service.database.sqlite import SqliteStore

    return SqliteStore.open(location, encryptor)
