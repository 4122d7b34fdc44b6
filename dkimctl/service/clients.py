"""The clients of the service, their states (interface 3.2), tokens (3.1) and deliveries (4.3)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import string
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.access_log import describe_failure
from dkimctl.service.database import Store
from dkimctl.service.schema import clients, deliveries, tokens

_logger = logging.getLogger(__name__)

_ID_ALPHABET = string.ascii_lowercase + string.digits
_CLIENT_ID = re.compile(r"[!-9;-~]{1,128}")  # visible ASCII but the colon (RFC 7617, section 2)
_DELIVERY_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")  # no escapes in a path (RFC 3986, 2.3)

TOKEN_LIFETIME = 3600  # seconds from issue to expiry (interface 8)

_SECRET_BYTES = 36  # 48 characters
_TOKEN_BYTES = 675  # 900 characters: as long as the signed tokens of public services
# A token that ends later than in an hour was issued by a clock that is ahead, which was set back
# since: it would stay valid for longer.
_CLIENT_OF_TOKEN = (
    sa.select(tokens.c.client_id)
    .join(clients)
    .where(tokens.c.token_hash == sa.bindparam("token_hash"))
    .where(tokens.c.expires_at > sa.bindparam("now"))
    .where(tokens.c.expires_at <= sa.bindparam("latest"))
    .where(clients.c.state == "active")
)

# Selects the requested client, or else the first one, so that a whole row is always read.
_requested = clients.alias()
_first = sa.select(sa.func.min(clients.c.client_id).label("client_id")).subquery()
_exists = sa.select(_requested.c.client_id).where(
    _requested.c.client_id == sa.bindparam("client_id")
)
_id_or_first = sa.func.coalesce(_exists.scalar_subquery(), _first.c.client_id)
_LOGIN = ("client_id", "state", "secret_hash", "previous_hash", "previous_until")
_CLIENT_OR_FIRST = sa.select(*(clients.c[name] for name in _LOGIN)).select_from(
    _first.join(clients, clients.c.client_id == _id_or_first)
)


class ClientState(StrEnum):
    """The states of a client ID. `deleted` is final."""

    ACTIVE = "active"
    DISABLED = "disabled"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials of a client; only a hash of the secret is stored."""

    client_id: str
    secret: str = field(repr=False)


def create_client(store: Store, client_id: str | None = None) -> ClientCredentials:
    """Add an active client; see `creating_client`."""
    with creating_client(store, client_id) as credentials:
        return credentials


@contextmanager
def creating_client(store: Store, client_id: str | None = None) -> Iterator[ClientCredentials]:
    """Add an active client at the end of the block, unless it fails.

    An ID that is not given is generated. Raises UsageError if it exists or cannot be sent.
    """
    if client_id is None:
        client_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(26))
    if not _CLIENT_ID.fullmatch(client_id):
        raise UsageError(
            "invalid client ID", hint="use 1 to 128 visible ASCII characters, no space and no colon"
        )
    credentials = ClientCredentials(client_id, secrets.token_urlsafe(_SECRET_BYTES))
    row = {
        "client_id": client_id,
        "secret_hash": _hash(credentials.secret),
        "state": ClientState.ACTIVE,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with store.writing() as connection:
        try:
            connection.execute(sa.insert(clients).values(row))
        except sa.exc.IntegrityError:
            raise UsageError(
                f"the client ID {client_id!r} already exists", hint="choose another client ID"
            ) from None
        yield credentials


def list_clients(store: Store) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """ID, state and creation of all clients, also deleted ones. Raises UsageError for a bad one."""
    columns = (clients.c.client_id, clients.c.state, clients.c.created_at)
    with store.reading() as connection:
        rows = connection.execute(sa.select(*columns).order_by(clients.c.client_id)).all()
    for row in rows:
        if row.state not in list(ClientState) or not all(isinstance(each, str) for each in row):
            raise UsageError(
                f"{store.name}: cannot use the service data: invalid client {row.client_id!r}",
                hint="restore a backup of the data file, or use another one",
            )
    return rows


def change_state(store: Store, client_id: str, state: ClientState) -> None:
    """Disable, enable or delete a client. Raises NegativeAnswer if it is unknown or deleted."""
    with store.writing() as connection:
        _require_client(connection, client_id)
        change = sa.update(clients).where(clients.c.client_id == client_id).values(state=state)
        connection.execute(change)


@contextmanager
def rotating_secret(store: Store, client_id: str, overlap: float) -> Iterator[ClientCredentials]:
    """Give the client another secret at the end of the block, unless it fails.

    The present one stays valid for `overlap` seconds; a secret before it is not valid any more.
    Tokens stay valid. Raises NegativeAnswer for an unknown or deleted client.
    """
    credentials = ClientCredentials(client_id, secrets.token_urlsafe(_SECRET_BYTES))
    is_client = clients.c.client_id == client_id
    after = {
        "secret_hash": _hash(credentials.secret),
        "previous_hash": clients.c.secret_hash if overlap else None,  # that of before
        "previous_until": time.time() + overlap if overlap else None,
    }
    with store.writing() as connection:
        _require_client(connection, client_id)
        connection.execute(sa.update(clients).where(is_client).values(after))
        yield credentials


def require_client(store: Store, client_id: str) -> None:
    """Raise NegativeAnswer unless the client exists and is not deleted."""
    with store.writing() as connection:
        _require_client(connection, client_id)


def _require_client(connection: sa.Connection, client_id: str) -> None:
    query = sa.select(clients.c.state).where(clients.c.client_id == client_id).with_for_update()
    # Octets that are not UTF-8 cannot be part of a query.
    is_possible = _CLIENT_ID.fullmatch(client_id)
    state = connection.execute(query).scalar_one_or_none() if is_possible else None
    if state is None:
        raise NegativeAnswer(
            "the client does not exist",  # not quoted: people paste ID:SECRET here
            hint="list the clients with `dkimctl service client list` and the same --data",
        )
    if state == ClientState.DELETED:
        raise NegativeAnswer(
            f"the client {client_id!r} is deleted, which is final",
            hint="create a new client with `dkimctl service client create`",
        )


def authenticate(
    store: Store, client_id: str, secret: str, *, clock: Callable[[], float] = time.time
) -> bool:
    """Whether these are the credentials of a client that is not deleted (interface 5.1).

    After a rotation, the previous secret is as good as the new one for a while. An unknown client
    takes as long as a wrong secret.
    """
    if not _CLIENT_ID.fullmatch(client_id):  # PostgreSQL takes no NUL
        client_id = ""
    with store.reading() as connection:
        row = connection.execute(_CLIENT_OR_FIRST, {"client_id": client_id}).first()
    if row is None:  # the service has no clients
        return False
    found_id, state, secret_hash, previous_hash, previous_until = row
    hashed = _hash(secret)
    matches = hmac.compare_digest(secret_hash, hashed)
    is_previous = hmac.compare_digest(previous_hash or secret_hash, hashed)
    matches |= is_previous and clock() < (previous_until or 0)
    return bool(matches) and found_id == client_id and state != ClientState.DELETED


def issue_token(store: Store, client_id: str, now: float) -> str:
    """A new token for the client, valid until `now` + TOKEN_LIFETIME (seconds since the epoch).

    Earlier tokens stay valid; expired ones are deleted now and then. A token that is lost because
    the machine fails costs its client no more than a new one.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    row = {"token_hash": _hash(token), "client_id": client_id, "expires_at": now + TOKEN_LIFETIME}
    with store.writing(durable=False) as connection:
        connection.execute(sa.insert(tokens), row)
    if not 0 <= now - store.purged_at < 60.0:  # seconds, in each process
        store.purged_at = now
        try:
            with store.writing(durable=False) as connection:
                connection.execute(sa.delete(tokens).where(tokens.c.expires_at <= now))
        except UsageError as error:
            _logger.error("expired tokens cannot be deleted: %s", describe_failure(error))
    return token


def client_of_token(store: Store, token: str, now: float) -> str | None:
    """The active client that holds the token; None if that is unknown or expired (3.2)."""
    parameters = {"token_hash": _hash(token), "now": now, "latest": now + TOKEN_LIFETIME}
    with store.reading() as connection:
        return connection.execute(_CLIENT_OF_TOKEN, parameters).scalar()


def add_delivery(store: Store, client_id: str, delivery_id: str = "") -> str:
    """Add a delivery with this ID or a new one, which is returned. Raises NegativeAnswer."""
    row = {"delivery_id": delivery_id or uuid.uuid4().hex, "client_id": client_id}
    with store.writing() as connection:
        _require_client(connection, client_id)
        connection.execute(sa.insert(deliveries).values(row))
    return row["delivery_id"]


def cancel_delivery(store: Store, client_id: str, delivery_id: str) -> bool:
    """Delete this delivery of the client; False if the client has no such delivery."""
    if not _DELIVERY_ID.fullmatch(delivery_id):  # PostgreSQL takes no NUL
        return False
    mine = (deliveries.c.delivery_id == delivery_id) & (deliveries.c.client_id == client_id)
    with store.writing() as connection:
        return connection.execute(sa.delete(deliveries).where(mine)).rowcount > 0


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
