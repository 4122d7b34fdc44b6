"""Keys made ahead, failed logins, an audit log, and an overlap of two secrets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("clients", sa.Column("previous_hash", sa.LargeBinary))
    op.add_column("clients", sa.Column("previous_until", sa.Float))
    op.create_table(
        "key_pool",
        sa.Column("key_id", _ID, primary_key=True),
        sa.Column("key_len", sa.Integer, nullable=False),
        sa.Column("value", sa.String, nullable=False),
        sa.Column("private_key", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_key_pool_key_len", "key_pool", ["key_len", "key_id"])
    op.create_table(
        "failed_logins",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("last_at", sa.Float, nullable=False),
    )
    op.create_index("ix_failed_logins_last_at", "failed_logins", ["last_at"])
    op.create_table(
        "audit",
        sa.Column("audit_id", _ID, primary_key=True),
        sa.Column("at", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
    )
