"""DELETE /send/<delivery_id> (interface 4.3, 5.3)."""

from __future__ import annotations

import falcon

from dkimctl.service import deliveries
from dkimctl.service.store import Store


class SendResource:
    """Cancels deliveries of the client that holds the token."""

    protected = True
    method = "DELETE"

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_delete(
        self, request: falcon.Request, response: falcon.Response, delivery_id: str
    ) -> None:
        if not deliveries.cancel(self._store, request.context.client_id, delivery_id):
            raise falcon.HTTPNotFound(description="There is no such delivery.")
        response.media = {"items": [{"delivery_id": delivery_id}]}
