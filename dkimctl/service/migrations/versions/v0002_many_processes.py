"""An overlap of two secrets.

This version also had tables of keys made ahead, of failed logins, and of what was done by whom.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("clients", sa.Column("previous_hash", sa.LargeBinary))
    op.add_column("clients", sa.Column("previous_until", sa.Float))
