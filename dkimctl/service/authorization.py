"""The Authorization header: client credentials (interface 4.1) and bearer tokens (5.2)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import falcon

from dkimctl.service import tokens
from dkimctl.service.store import Store


def basic_credentials(header: str | None) -> tuple[str, str] | None:
    """Client ID and secret of a Basic header (RFC 7617, section 2); None if there are none."""
    encoded = _of_scheme(header, "basic")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode("utf-8")
    except ValueError:
        return None
    client_id, colon, secret = decoded.partition(":")
    return (client_id, secret) if colon else None


class BearerAuthentication:
    """Falcon middleware: lets a request to a protected resource pass only with a token.

    A resource is protected if its `protected` is true; it finds the client's ID in
    `request.context.client_id`. Answers 401 and 403 as interface 7.2 says.
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
        token = _of_scheme(request.auth, "bearer")
        if not token:
            raise falcon.HTTPUnauthorized(description="Unauthorized", challenges=["Bearer"])
        client_id = tokens.holder(self._store, token, self._clock())
        if client_id is None:
            raise falcon.HTTPForbidden(description="Forbidden")
        request.context.client_id = client_id


def _of_scheme(header: str | None, scheme: str) -> str:
    """What follows the scheme (in any case) in the header; empty if it is another one."""
    sent, _, value = (header or "").partition(" ")
    return value.strip() if sent.lower() == scheme else ""
