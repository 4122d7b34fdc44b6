"""Bearer tokens: opaque, kept as hashes, each with its own expiry (interface 3.1)."""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import delete, insert, select

from dkimctl.service.clients import ClientState
from dkimctl.service.schema import clients, tokens
from dkimctl.service.store import Store

LIFETIME = 3600
"""Seconds from issue to expiry (interface 8)."""

_TOKEN_BYTES = 675  # 900 characters: as long as the signed tokens of public services


def issue(store: Store, client_id: str, now: float) -> str:
    """A new token for the client, valid until `now` + LIFETIME (seconds since the epoch).

    Tokens issued before stay as they are; expired ones are cleared away.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    row = {"token_hash": _hash(token), "client_id": client_id, "expires_at": now + LIFETIME}
    with store.writing() as connection:
        connection.execute(delete(tokens).where(tokens.c.expires_at <= now))
        connection.execute(insert(tokens).values(row))
    return token


def holder(store: Store, token: str, now: float) -> str | None:
    """The ID of the active client that holds this token; None if it gives no access.

    No access: unknown, expired, or of a client that is disabled or deleted (interface 3.2).
    """
    query = (
        select(tokens.c.client_id)
        .join(clients)
        .where(tokens.c.token_hash == _hash(token))
        .where(tokens.c.expires_at > now)
        .where(clients.c.state == ClientState.ACTIVE)
    )
    with store.reading() as connection:
        return connection.execute(query).scalar_one_or_none()


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
