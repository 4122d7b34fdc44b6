"""Deliveries, which the client they belong to may cancel (interface 4.3, 5.3)."""

from __future__ import annotations

import re
import uuid

from sqlalchemy import delete, insert
from sqlalchemy.exc import IntegrityError

from dkimctl.errors import UsageError
from dkimctl.service import audit
from dkimctl.service.clients import require_client
from dkimctl.service.database.schema import deliveries
from dkimctl.service.database.store import Store

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")  # no escapes in a path (RFC 3986, 2.3)


def add_delivery(store: Store, client_id: str, delivery_id: str | None = None) -> str:
    """Add a delivery of the client and return its ID, generated if it is not given.

    Raises NegativeAnswer for an unknown or deleted client, UsageError for an ID that exists or
    cannot be part of a path.
    """
    if delivery_id is None:
        delivery_id = uuid.uuid4().hex
    if not _DELIVERY_ID.fullmatch(delivery_id):
        raise UsageError(
            f"invalid delivery ID {delivery_id!r}",
            hint="use 1 to 128 letters, digits and . _ ~ -",
        )
    try:
        with store.writing() as connection:
            require_client(connection, client_id)
            row = {"delivery_id": delivery_id, "client_id": client_id}
            connection.execute(insert(deliveries).values(row))
            event = audit.operator_event("delivery add", f"{client_id} {delivery_id}")
            audit.record(connection, [event])
    except IntegrityError:
        raise UsageError(
            f"the delivery ID {delivery_id!r} already exists", hint="choose another delivery ID"
        ) from None
    return delivery_id


def cancel_delivery(store: Store, client_id: str, delivery_id: str) -> bool:
    """Delete this delivery of the client; False if the client has no such delivery."""
    if not _DELIVERY_ID.fullmatch(delivery_id):  # PostgreSQL takes no NUL
        return False
    statement = (
        delete(deliveries)
        .where(deliveries.c.delivery_id == delivery_id)
        .where(deliveries.c.client_id == client_id)
    )
    with store.writing() as connection:
        return connection.execute(statement).rowcount > 0
