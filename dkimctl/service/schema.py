"""The tables of the service's data, and their revision: creating and upgrading them."""

from __future__ import annotations

import sqlalchemy as sa

from dkimctl.errors import UsageError

REVISION = "0003"  # of the tables below; see `prepare`

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
version = sa.Table(
    "dkimctl_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)


def prepare(connection: sa.Connection, revision: str | None, name: str) -> None:
    """Create the tables without a `revision`, or upgrade them. Raises UsageError for newer ones."""
    if revision == REVISION:
        return
    if revision is None:  # Alembic would do the same, but takes 0.1 s to import
        metadata.create_all(connection)
    elif revision > REVISION:
        raise UsageError(
            f"{name} was written by a newer dkimctl", hint="upgrade dkimctl, or use other data"
        )
    else:
        from alembic.migration import MigrationContext
        from alembic.operations import Operations

        op = Operations(MigrationContext.configure(connection))
        if revision < "0001":  # files before there were revisions; the first had no passphrases
            passphrases.create(connection, checkfirst=True)
            op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"], if_not_exists=True)
        if revision < "0002":  # an overlap of two secrets
            op.add_column("clients", sa.Column("previous_hash", sa.LargeBinary))
            op.add_column("clients", sa.Column("previous_until", sa.Float))
        # Keys are made when a request asks for them, and a proxy limits logins. The table `audit`
        # of 0002 stays, although nothing is written to it any longer.
        op.drop_table("key_pool", if_exists=True)
        op.drop_table("failed_logins", if_exists=True)
    version.create(connection, checkfirst=True)
    connection.execute(sa.delete(version))
    connection.execute(sa.insert(version).values(version_num=REVISION))


def revision_of(connection: sa.Connection) -> str:
    """The revision that the tables have."""
    return str(connection.execute(sa.select(version.c.version_num)).scalar_one())
