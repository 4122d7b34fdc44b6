"""The tables of the service's data, and their revision: creating and upgrading them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
)

from dkimctl.errors import UsageError

REVISION = "0003"
"""The newest of `migrations/versions`."""

metadata = MetaData()

# After a new secret, the previous one is valid until `previous_until`, seconds since the epoch.
clients = Table(
    "clients",
    metadata,
    Column("client_id", String, primary_key=True),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", String, nullable=False),
    Column("previous_hash", LargeBinary),
    Column("previous_until", Float),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)

# Names are in lower case, so that the primary key compares them without case.
registrations = Table(
    "registrations",
    metadata,
    Column("sign_domain", String),
    Column("selector", String),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("key_len", Integer, nullable=False),
    Column("start_date", String, nullable=False),
    Column("default", BigInteger, nullable=False),
    Column("enable", Boolean, nullable=False),
    Column("value", String, nullable=False),
    Column("regist_date", String, nullable=False),
    Column("private_key", LargeBinary, nullable=False),
    PrimaryKeyConstraint("sign_domain", "selector"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", String, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
)

# At most one row: with which passphrase the private keys are encrypted (see `key_pairs`). Without a
# row, any passphrase is accepted.
passphrases = Table("passphrases", metadata, Column("marker", LargeBinary, primary_key=True))

# Not what Alembic calls it by default, a table that another program may have.
_version = Table("dkimctl_version", MetaData(), Column("version_num", String(32), primary_key=True))
VERSION_TABLE = _version.name


def create(connection: Connection) -> None:
    """Create all tables. Alembic would do the same, but takes 0.1 s to import."""
    metadata.create_all(connection)
    _version.create(connection)
    connection.execute(insert(_version).values(version_num=REVISION))


def has_revision(connection: Connection) -> bool:
    """Whether the database has tables of this service with a revision."""
    return inspect(connection).has_table(VERSION_TABLE)


def require_current(connection: Connection, name: str, *, is_unversioned: bool = False) -> None:
    """Upgrade the tables if they are of an earlier version.

    `is_unversioned`: they are of this service, and older than the table with the revision. Raises
    UsageError if they are of a newer version.
    """
    if not is_unversioned:
        revision = connection.execute(select(_version.c.version_num)).scalar_one()
        if revision == REVISION:
            return
        if revision > REVISION:
            raise newer_version(name)
    upgrade(connection)


def upgrade(connection: Connection) -> None:
    """Run the migrations that the tables have not had."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "dkimctl.service:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def newer_version(name: str) -> UsageError:
    return UsageError(
        f"{name} was written by a newer dkimctl", hint="upgrade dkimctl, or use other data"
    )
