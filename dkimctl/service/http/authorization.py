"""Bearer tokens (interface 3.1): opaque, stored as hashes, each with its own expiry."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import falcon
from sqlalchemy import bindparam, delete, insert, select

from dkimctl.errors import UsageError
from dkimctl.service.clients import ClientState
from dkimctl.service.database import Store
from dkimctl.service.failures import describe_failure
from dkimctl.service.schema import clients, tokens

_logger = logging.getLogger(__name__)

TOKEN_LIFETIME = 3600
"""Seconds from issue to expiry (interface 8)."""

_TOKEN_BYTES = 675  # 900 characters: as long as the signed tokens of public services
_PURGE_EVERY = 60.0  # seconds, in each process
_PURGED_AT_ONCE = 1000  # tokens; if there are more, the next issue goes on with them

# When expired tokens were last deleted, in seconds since the epoch.
_purged_at: WeakKeyDictionary[Store, float] = WeakKeyDictionary()
_INSERT_TOKEN = insert(tokens)
_CLIENT_OF_TOKEN = (
    select(tokens.c.client_id)
    .join(clients)
    .where(tokens.c.token_hash == bindparam("token_hash"))
    .where(tokens.c.expires_at > bindparam("now"))
    .where(clients.c.state == ClientState.ACTIVE)
)


class BearerAuthentication:
    """Falcon middleware: requires a valid bearer token for protected resources.

    A resource is protected if its `protected` is true; it then finds the client's ID in
    `request.context.client_id`. Answers 401 and 403 as in interface 7.2.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def process_resource(
        self,
        request: falcon.Request,
        _response: falcon.Response,
        resource: Any,
        _params: dict[str, Any],
    ) -> None:
        if not resource.protected:
            return
        token = authorization_value(request.auth, "bearer")
        if not token:
            raise falcon.HTTPUnauthorized(description="Unauthorized", challenges=["Bearer"])
        client_id = client_of_token(self._store, token, self._clock())
        if client_id is None:
            raise falcon.HTTPForbidden(description="Forbidden")
        request.context.client_id = client_id


def authorization_value(header: str | None, scheme: str) -> str:
    """The part of an Authorization header after the scheme; "" if it has another scheme."""
    given, _, value = (header or "").partition(" ")
    return value.strip() if given.lower() == scheme else ""


def issue_token(store: Store, client_id: str, now: float) -> str:
    """A new token for the client, valid until `now` + TOKEN_LIFETIME (seconds since the epoch).

    Earlier tokens stay valid; expired ones are deleted now and then. A token that is lost because
    the machine fails costs its client no more than a new one.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    row = {"token_hash": _hash(token), "client_id": client_id, "expires_at": now + TOKEN_LIFETIME}
    with store.writing(durable=False) as connection:
        connection.execute(_INSERT_TOKEN, row)
    if not 0 <= now - _purged_at.get(store, 0) < _PURGE_EVERY:
        _purge(store, now)
    return token


def client_of_token(store: Store, token: str, now: float) -> str | None:
    """The ID of the active client that holds the token.

    None if it is unknown or expired, or its client is disabled or deleted (interface 3.2).
    """
    parameters = {"token_hash": _hash(token), "now": now}
    with store.reading() as connection:
        return connection.execute(_CLIENT_OF_TOKEN, parameters).scalar()


def _purge(store: Store, now: float) -> None:
    """Delete expired tokens; a failure is logged, since it is not that of the request."""
    # Those that another process is deleting are left to it. A CTE is run once: as a
    # plain subquery, PostgreSQL may run it again and delete more.
    expired = (
        select(tokens.c.token_hash)
        .where(tokens.c.expires_at <= now)
        .limit(_PURGED_AT_ONCE)
        .with_for_update(skip_locked=True)
        .cte("expired")
    )
    statement = (
        delete(tokens)
        .where(tokens.c.token_hash.in_(select(expired.c.token_hash)))
        .returning(tokens.c.token_hash)  # SQLite does not count what a CTE deletes
    )
    _purged_at[store] = now
    try:
        with store.writing(durable=False) as connection:
            deleted = len(connection.execute(statement).all())
        if deleted == _PURGED_AT_ONCE:
            _purged_at.pop(store, None)
    except UsageError as error:
        _logger.error("expired tokens cannot be deleted: %s", describe_failure(error))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
