"""Scheduled deliveries, as far as the interface shows them: they can be cancelled (4.3, 5.3)."""

from __future__ import annotations

import re
import uuid

from sqlalchemy import delete, insert
from sqlalchemy.exc import IntegrityError

from dkimctl.errors import UsageError
from dkimctl.service.clients import require_client
from dkimctl.service.schema import deliveries
from dkimctl.service.store import Store

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")  # needs no escape in a path (RFC 3986, 2.3)


def add_delivery(store: Store, client_id: str, delivery_id: str | None = None) -> str:
    """Add a delivery of the client and return its ID, generated if not given.

    Raises NegativeAnswer for an unknown or deleted client, UsageError for an ID that is
    taken or that cannot stand in a path.
    """
    if delivery_id is None:
        delivery_id = uuid.uuid4().hex
    if not _DELIVERY_ID.fullmatch(delivery_id):
        raise UsageError(
            f"{delivery_id!r} cannot be a delivery ID",
            hint="use 1 to 128 letters, digits and . _ ~ -",
        )
    try:
        with store.writing() as connection:
            require_client(connection, client_id)
            row = {"delivery_id": delivery_id, "client_id": client_id}
            connection.execute(insert(deliveries).values(row))
    except IntegrityError:
        raise UsageError(
            f"the delivery ID {delivery_id!r} exists already", hint="choose another delivery ID"
        ) from None
    return delivery_id


def cancel(store: Store, client_id: str, delivery_id: str) -> bool:
    """Remove this delivery of the client; False if the client has none of that ID."""
    statement = (
        delete(deliveries)
        .where(deliveries.c.delivery_id == delivery_id)
        .where(deliveries.c.client_id == client_id)
    )
    with store.writing() as connection:
        return connection.execute(statement).rowcount > 0
