"""Run by Alembic: applies the migrations within the transaction of `schema`."""

from __future__ import annotations

from alembic import context

from dkimctl.service.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
