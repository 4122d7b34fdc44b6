"""The tables of the service's data, of the newest revision (see `migrations`)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
)

metadata = MetaData()

# After a new secret, the previous one is valid until `previous_until`, seconds since the epoch.
clients = Table(
    "clients",
    metadata,
    Column("client_id", String, primary_key=True),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", String, nullable=False),
    Column("previous_hash", LargeBinary),
    Column("previous_until", Float),
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
    Column("default", BigInteger, nullable=False),
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

# At most one row: an unused key, encrypted with the passphrase of all keys. Without a row, any
# passphrase is accepted.
passphrases = Table(
    "passphrases",
    metadata,
    Column("marker", LargeBinary, primary_key=True),
)

# Key pairs made ahead, not yet of any registration.
key_pool = Table(
    "key_pool",
    metadata,
    Column("key_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("key_len", Integer, nullable=False),
    Column("value", String, nullable=False),
    Column("private_key", LargeBinary, nullable=False),
    Index("ix_key_pool_key_len", "key_len", "key_id"),
)

# `key` is the SHA-256 of client ID and address.
failed_logins = Table(
    "failed_logins",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_at", Float, nullable=False, index=True),
)

# What operators did and what was registered; never a secret. `at` is ISO 8601 in UTC.
audit = Table(
    "audit",
    metadata,
    Column("audit_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
)
