"""The data files before there were revisions; those of the first version had no passphrases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    marker = sa.Column("marker", sa.LargeBinary, primary_key=True)
    op.create_table("passphrases", marker, if_not_exists=True)
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"], if_not_exists=True)
