"""The data files before there were revisions; those of the first version had no passphrases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "clients",
        sa.Column("client_id", sa.String, primary_key=True),
        sa.Column("secret_hash", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created_at", sa.String, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "tokens",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("client_id", sa.String, sa.ForeignKey("clients.client_id"), nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"], if_not_exists=True)
    op.create_table(
        "registrations",
        sa.Column("sign_domain", sa.String),
        sa.Column("selector", sa.String),
        sa.Column("client_id", sa.String, sa.ForeignKey("clients.client_id"), nullable=False),
        sa.Column("key_len", sa.Integer, nullable=False),
        sa.Column("start_date", sa.String, nullable=False),
        sa.Column("default", sa.BigInteger, nullable=False),
        sa.Column("enable", sa.Boolean, nullable=False),
        sa.Column("value", sa.String, nullable=False),
        sa.Column("regist_date", sa.String, nullable=False),
        sa.Column("private_key", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sign_domain", "selector"),
        if_not_exists=True,
    )
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", sa.String, primary_key=True),
        sa.Column("client_id", sa.String, sa.ForeignKey("clients.client_id"), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "passphrases", sa.Column("marker", sa.LargeBinary, primary_key=True), if_not_exists=True
    )
