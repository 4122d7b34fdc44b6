"""The revision of the tables: creating them, and upgrading those of an earlier version."""

from __future__ import annotations

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select

from dkimctl.errors import UsageError
from dkimctl.service.database.schema import metadata

REVISION = "0002"
"""The newest of `migrations/versions`."""

VERSION_TABLE = "dkimctl_version"
"""What Alembic calls `alembic_version`, a table that another program may have."""

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


def create(connection: Connection) -> None:
    """Create all tables. Alembic would do the same, but takes 0.1 s to import."""
    metadata.create_all(connection)
    _version.create(connection)
    connection.execute(insert(_version).values(version_num=REVISION))


def require_current(connection: Connection, name: str, *, is_unversioned: bool) -> None:
    """Upgrade the tables if they are of an earlier version.

    `is_unversioned`: they are of this service, and older than the table with the revision. Raises
    UsageError if they are of a newer version.
    """
    if is_unversioned or not is_current(connection, name):
        _upgrade(connection)


def is_current(connection: Connection, name: str) -> bool:
    """Whether the tables are of this version; False: of an earlier one. Raises UsageError."""
    revision = connection.execute(select(_version.c.version_num)).scalar_one()
    if revision > REVISION:
        raise newer_version(name)
    return bool(revision == REVISION)


def has_revision(connection: Connection) -> bool:
    """Whether the database has tables of this service with a revision."""
    return inspect(connection).has_table(VERSION_TABLE)


def newer_version(name: str) -> UsageError:
    return UsageError(
        f"{name} was written by a newer dkimctl",
        hint="upgrade dkimctl, or use other data",
    )


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "dkimctl.service.database:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
