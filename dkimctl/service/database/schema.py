"""The tables of the service's data file."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
)

metadata = MetaData()

clients = Table(
    "clients",
    metadata,
    Column("client_id", String, primary_key=True),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", String, nullable=False),
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
    Column("default", Integer, nullable=False),
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

# Since version 2. At most one row: an unused key, encrypted with the passphrase of all keys.
# A file without a row accepts any passphrase.
passphrases = Table(
    "passphrases",
    metadata,
    Column("marker", LargeBinary, primary_key=True),
)
