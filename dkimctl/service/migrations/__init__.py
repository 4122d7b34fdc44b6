"""Alembic migrations: how the tables came from one version to the next."""
