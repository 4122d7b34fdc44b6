"""Keys are made when a request asks for them, and a proxy limits logins.

What is in the table `audit` of revision 0002 stays, although nothing is written to it any longer.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_table("key_pool", if_exists=True)
    op.drop_table("failed_logins", if_exists=True)
