"""POST /oauth2/token (interface 4.1, 5.1, 7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import falcon

from dkimctl.service import clients, tokens
from dkimctl.service.authorization import basic_credentials
from dkimctl.service.body import read_body
from dkimctl.service.store import Store

_FORM = "application/x-www-form-urlencoded"
_ERROR_CONTENT_TYPE = "application/json;charset=UTF-8"
_MAX_FIELDS = 100


class TokenRefused(falcon.HTTPBadRequest):
    """400 with one of the error codes of RFC 6749, section 5.2."""

    def __init__(self, error_code: str) -> None:
        super().__init__()
        self.error_code = error_code


def answer_refusal(
    _request: falcon.Request,
    response: falcon.Response,
    refused: TokenRefused,
    _params: dict[str, Any],
) -> None:
    """Falcon error handler: the body of interface 2.2, its Content-Type as in 4.1."""
    response.status = falcon.HTTP_BAD_REQUEST
    response.content_type = _ERROR_CONTENT_TYPE
    response.media = {"error": refused.error_code}


class TokenResource:
    """Issues access tokens to clients that present their credentials."""

    protected = False
    method = "POST"

    def __init__(self, store: Store, clock: Callable[[], float], max_body: int) -> None:
        self._store = store
        self._clock = clock
        self._max_body = max_body

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        grant_type = _grant_type(request.content_type, read_body(request, self._max_body))
        client_id = self._authenticated_client(request.auth)
        if grant_type != "client_credentials":
            raise TokenRefused("unsupported_grant_type")
        response.media = {
            "access_token": tokens.issue(self._store, client_id, self._clock()),
            "token_type": "Bearer",
            "expires_in": tokens.LIFETIME,
        }

    def _authenticated_client(self, authorization: str | None) -> str:
        credentials = basic_credentials(authorization)
        if credentials is None or not clients.authenticate(self._store, *credentials):
            raise TokenRefused("invalid_client")
        return credentials[0]


def _grant_type(content_type: str | None, body: bytes) -> str:
    """The one grant_type of the form; without a value it counts as missing (RFC 6749, 3.2)."""
    values = [value for name, value in _form_fields(content_type, body) if name == "grant_type"]
    if not values:
        raise falcon.HTTPMethodNotAllowed(["POST"], description="grant_type is missing.")
    if len(values) > 1:
        raise TokenRefused("invalid_request")
    return values[0]


def _form_fields(content_type: str | None, body: bytes) -> list[tuple[str, str]]:
    if not body:
        return []
    if (content_type or "").partition(";")[0].strip().lower() != _FORM:
        raise TokenRefused("invalid_request")
    try:
        return parse_qsl(
            body.decode("ascii"), strict_parsing=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise TokenRefused("invalid_request") from None
