"""The tables of the service's data, and their revision: creating and upgrading them."""

from __future__ import annotations

import sqlalchemy as sa

from dkimctl.errors import UsageError

REVISION = "0003"
"""The newest of `migrations/versions`."""

metadata = sa.MetaData()

# After a new secret, the previous one is valid until `previous_until`, seconds since the epoch.
clients = sa.Table(
    "clients",
    metadata,
    sa.Column("client_id", sa.String, primary_key=True),
    sa.Column("secret_hash", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("created_at", sa.String, nullable=False),
    sa.Column("previous_hash", sa.LargeBinary),
    sa.Column("previous_until", sa.Float),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("token_hash", sa.LargeBinary, primary_key=True),
    sa.Column("client_id", sa.ForeignKey("clients.client_id"), nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False, index=True),
)

# Names are in lower case, so that the primary key compares them without case.
registrations = sa.Table(
    "registrations",
    metadata,
    sa.Column("sign_domain", sa.String),
    sa.Column("selector", sa.String),
    sa.Column("client_id", sa.ForeignKey("clients.client_id"), nullable=False),
    sa.Column("key_len", sa.Integer, nullable=False),
    sa.Column("start_date", sa.String, nullable=False),
    sa.Column("default", sa.BigInteger, nullable=False),
    sa.Column("enable", sa.Boolean, nullable=False),
    sa.Column("value", sa.String, nullable=False),
    sa.Column("regist_date", sa.String, nullable=False),
    sa.Column("private_key", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("sign_domain", "selector"),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("delivery_id", sa.String, primary_key=True),
    sa.Column("client_id", sa.ForeignKey("clients.client_id"), nullable=False),
)

# At most one row: with which passphrase the private keys are encrypted (see `key_pairs`). Without a
# row, any passphrase is accepted.
passphrases = sa.Table(
    "passphrases", metadata, sa.Column("marker", sa.LargeBinary, primary_key=True)
)

# Not what Alembic calls it by default, a table that another program may have.
_version = sa.Table(
    "dkimctl_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)
VERSION_TABLE = _version.name


def prepare(connection: sa.Connection, revision: str | None, name: str) -> None:
    """Create the tables, or upgrade those of an earlier revision; None: there are none.

    Raises UsageError if they are of a newer version.
    """
    if revision is None:  # Alembic would do the same, but takes 0.1 s to import
        metadata.create_all(connection)
        _version.create(connection)
        connection.execute(sa.insert(_version).values(version_num=REVISION))
    elif revision > REVISION:
        raise UsageError(
            f"{name} was written by a newer dkimctl", hint="upgrade dkimctl, or use other data"
        )
    elif revision < REVISION:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", "dkimctl.service:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision_of(connection: sa.Connection) -> str:
    """The revision that the tables have."""
    return str(connection.execute(sa.select(_version.c.version_num)).scalar_one())
