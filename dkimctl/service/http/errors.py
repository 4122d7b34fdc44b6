"""Error answers (interface 7), and what is logged of unexpected failures."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import falcon

from dkimctl.service.failures import describe_failure

_logger = logging.getLogger(__name__)

_TOKEN_ERROR_TYPE = "application/json;charset=UTF-8"  # noqa: S105 - interface 4.1


class TokenRefused(falcon.HTTPBadRequest):
    """400 to a token request, with one of the error codes of RFC 6749, section 5.2."""

    def __init__(self, error_code: str) -> None:
        super().__init__()
        self.error_code = error_code


class LoginBlocked(falcon.HTTPTooManyRequests):
    """429 to a token request after too many failed ones (interface 7.4). In whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            description=f"Too many failed logins; try again in {retry_after} s.",
            retry_after=retry_after,
        )


class RequestRefused(falcon.HTTPBadRequest):
    """400 to a registration request that is wrong as a whole."""


def add_error_handlers(app: falcon.App[Any, Any]) -> None:
    """Have `app` answer every error as the interface says, in JSON."""
    app.set_error_serializer(_serialize_error)
    app.add_error_handler(TokenRefused, _answer_token_refused)
    app.add_error_handler(LoginBlocked, _answer_login_blocked)
    app.add_error_handler(RequestRefused, _answer_request_refused)
    app.add_error_handler(Exception, _answer_unexpected)


def _serialize_error(
    _request: falcon.Request, response: falcon.Response, error: falcon.HTTPError
) -> None:
    """The error body of interface 7: JSON with `message`."""
    response.content_type = falcon.MEDIA_JSON
    response.media = {"message": error.description or HTTPStatus(error.status_code).phrase}


def _answer_token_refused(
    _request: falcon.Request,
    response: falcon.Response,
    refused: TokenRefused,
    _params: dict[str, Any],
) -> None:
    """The body of interface 2.2, its Content-Type as in 4.1."""
    response.status = falcon.HTTP_BAD_REQUEST
    response.content_type = _TOKEN_ERROR_TYPE
    response.media = {"error": refused.error_code}


def _answer_login_blocked(
    _request: falcon.Request,
    response: falcon.Response,
    blocked: LoginBlocked,
    _params: dict[str, Any],
) -> None:
    """As for other refused tokens, with the reason as `message`."""
    response.status = falcon.HTTP_TOO_MANY_REQUESTS
    response.set_headers(blocked.headers or {})
    response.content_type = _TOKEN_ERROR_TYPE
    response.media = {"error": "slow_down", "message": blocked.description}


def _answer_request_refused(
    _request: falcon.Request,
    response: falcon.Response,
    refused: RequestRefused,
    _params: dict[str, Any],
) -> None:
    """A 400 has the shape of interface 2.4 as well (4.2), without entries."""
    response.status = falcon.HTTP_BAD_REQUEST
    response.media = {"items": [], "count": 0, "total": 0, "message": refused.description}


def _answer_unexpected(
    request: falcon.Request,
    _response: falcon.Response,
    error: Exception,
    _params: dict[str, Any],
) -> None:
    fields = {"request_id": request.context.get("request_id")}
    _logger.error("a request failed: %s", describe_failure(error), extra={"fields": fields})
    raise falcon.HTTPInternalServerError(description="Internal Server Error")
