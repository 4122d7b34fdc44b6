"""The clients of the service and their states (interface 3.2)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.schema import clients
from dkimctl.service.store import Store

_ID_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH = 26
_SECRET_BYTES = 36  # 48 characters
_CLIENT_ID = re.compile(r"[!-9;-~]{1,128}")  # visible ASCII but the colon (RFC 7617, section 2)
_SECRET = re.compile(r"[!-~]{1,256}")

# The client who is asked for, or else the first: a whole row is read in any case.
_asked = clients.alias()
_first = select(func.min(clients.c.client_id).label("client_id")).subquery()
_exists = select(_asked.c.client_id).where(_asked.c.client_id == bindparam("client_id"))
_SOME_CLIENT = select(clients.c.client_id, clients.c.secret_hash, clients.c.state).select_from(
    _first.join(
        clients,
        clients.c.client_id == func.coalesce(_exists.scalar_subquery(), _first.c.client_id),
    )
)


class ClientState(StrEnum):
    """The states of a client ID. `deleted` is final."""

    ACTIVE = "active"
    DISABLED = "disabled"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """What the operator of the service hands to a client, once."""

    client_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientSummary:
    """One client as listed. `created_at` is ISO 8601 in UTC, to the second."""

    client_id: str
    state: ClientState
    created_at: str


def create_client(
    store: Store, client_id: str | None = None, secret: str | None = None
) -> ClientCredentials:
    """Add an active client; what is not given is generated.

    Only a SHA-256 hash of the secret is kept, so a given secret must be as hard to guess
    as a generated one. Raises UsageError for an ID that exists or characters that cannot
    be sent.
    """
    if client_id is None:
        client_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    if secret is None:
        secret = secrets.token_urlsafe(_SECRET_BYTES)
    _check_sendable(client_id, secret)
    row = {
        "client_id": client_id,
        "secret_hash": _hash(secret),
        "state": ClientState.ACTIVE,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        with store.writing() as connection:
            connection.execute(insert(clients).values(row))
    except IntegrityError:
        raise UsageError(
            f"the client ID {client_id!r} exists already", hint="choose another client ID"
        ) from None
    return ClientCredentials(client_id, secret)


def list_clients(store: Store) -> list[ClientSummary]:
    """All clients, also the deleted ones, in the order of their IDs.

    Raises UsageError where the data file has one that this service cannot have written.
    """
    columns = (clients.c.client_id, clients.c.state, clients.c.created_at)
    with store.reading() as connection:
        rows = connection.execute(select(*columns).order_by(clients.c.client_id)).all()
    return [_summary(store, *row) for row in rows]


def disable_client(store: Store, client_id: str) -> None:
    """Let the client's tokens answer 403. Raises NegativeAnswer: unknown or deleted client."""
    _change_state(store, client_id, ClientState.DISABLED)


def enable_client(store: Store, client_id: str) -> None:
    """Undo `disable_client`. Raises NegativeAnswer: unknown or deleted client."""
    _change_state(store, client_id, ClientState.ACTIVE)


def delete_client(store: Store, client_id: str) -> None:
    """End the client for good; its registrations stay taken.

    Raises NegativeAnswer: unknown or deleted client.
    """
    _change_state(store, client_id, ClientState.DELETED)


def authenticate(store: Store, client_id: str, secret: str) -> bool:
    """Whether these are the credentials of a client that is not deleted (interface 5.1).

    An unknown client costs the same steps as a wrong secret: `tests/bench/guessing.py` measures it.
    """
    with store.reading() as connection:
        row = connection.execute(_SOME_CLIENT, {"client_id": client_id}).first()
    if row is None:  # there is no client at all
        return False
    matches = hmac.compare_digest(row.secret_hash, _hash(secret))
    return matches and row.client_id == client_id and row.state != ClientState.DELETED


def require_client(connection: Connection, client_id: str) -> None:
    """Raises NegativeAnswer unless the client exists and is not deleted."""
    query = select(clients.c.state).where(clients.c.client_id == client_id)
    state = connection.execute(query).scalar_one_or_none()
    if state is None:
        raise NegativeAnswer(
            f"there is no client {client_id!r}",
            hint="`dkimctl service client list` shows the clients",
        )
    if state == ClientState.DELETED:
        raise NegativeAnswer(
            f"the client {client_id!r} is deleted, which is final",
            hint="create another client",
        )


def _summary(store: Store, *fields: object) -> ClientSummary:
    match fields:
        case (str(client_id), str(state), str(created_at)) if state in list(ClientState):
            return ClientSummary(client_id, ClientState(state), created_at)
    raise UsageError(
        f"{store.path}: cannot use the service data: the client {fields[0]!r} is not of our making",
        hint="put back a copy of the data file, or give another one",
    )


def _change_state(store: Store, client_id: str, state: ClientState) -> None:
    with store.writing() as connection:
        require_client(connection, client_id)
        connection.execute(
            update(clients).where(clients.c.client_id == client_id).values(state=state)
        )


def _check_sendable(client_id: str, secret: str) -> None:
    if not _CLIENT_ID.fullmatch(client_id):
        raise UsageError(
            f"{client_id!r} cannot be a client ID",
            hint="use 1 to 128 visible ASCII characters, no space and no colon",
        )
    if not _SECRET.fullmatch(secret):
        raise UsageError(
            "the given secret cannot be a client's secret",
            hint="use 1 to 256 visible ASCII characters, no space",
        )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
