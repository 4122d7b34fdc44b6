"""The endpoints (interface 4), how they read requests, and their error answers (interface 7)."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import falcon

from dkimctl.service.access_log import describe_failure
from dkimctl.service.clients import (
    TOKEN_LIFETIME,
    authenticate,
    cancel_delivery,
    client_of_token,
    issue_token,
)
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KeysNotInTime
from dkimctl.service.registrations import Registrar, validate_entry

_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100
_TOKEN_ERROR_TYPE = "application/json;charset=UTF-8"  # noqa: S105 - interface 4.1

_logger = logging.getLogger(__name__)


class TokenResource:
    """POST /oauth2/token (interface 4.1, 5.1, 7.1): issues tokens for client credentials."""

    protected = False
    method = "POST"

    def __init__(self, store: Store, clock: Callable[[], float], bodies: Bodies) -> None:
        self._store = store
        self._clock = clock
        self._bodies = bodies

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        if not has_body(request):
            raise _grant_type_missing()
        # Before the body is read: it may come slowly, and keeps a thread meanwhile.
        client_id, secret = _basic_credentials(request.auth) or ("", None)
        if secret is not None:
            request.context.client_id = client_id  # for the log, also if it is wrong
        if secret is None or not authenticate(self._store, client_id, secret, clock=self._clock):
            request.context.failed_login = True
            raise TokenRefused("invalid_client")
        grant_type = _grant_type(request.content_type, self._bodies.read(request))
        if grant_type != "client_credentials":
            raise TokenRefused("unsupported_grant_type")
        response.media = {
            "access_token": issue_token(self._store, client_id, self._clock()),
            "token_type": "Bearer",
            "expires_in": TOKEN_LIFETIME,
        }


class DkimResource:
    """POST /domain/dkim (interface 4.2, 7.3): registers signing domains for the token's client."""

    protected = True
    method = "POST"

    def __init__(self, registrar: Registrar, max_domains: int, bodies: Bodies) -> None:
        self._registrar = registrar
        self._max_domains = max_domains
        self._bodies = bodies

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        domains = _requested_domains(self._bodies.read(request), self._max_domains)
        entries = [validate_entry(domain) for domain in domains]
        try:
            items = self._registrar.register(request.context.client_id, entries)
        except KeysNotInTime as error:  # nothing is registered
            raise falcon.HTTPTooManyRequests(
                description="The keys cannot be made in time; retry later.",
                retry_after=error.retry_after,
            ) from None
        request.context.registered = items
        response.media = {"items": items, "count": len(items), "total": len(items)}


class SendResource:
    """DELETE /send/<delivery_id> (interface 4.3, 5.3): cancels a delivery of the token's client."""

    protected = True
    method = "DELETE"

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_delete(
        self, request: falcon.Request, response: falcon.Response, delivery_id: str
    ) -> None:
        if not cancel_delivery(self._store, request.context.client_id, delivery_id):
            raise falcon.HTTPNotFound(description="There is no such delivery.")
        response.media = {"items": [{"delivery_id": delivery_id}]}


class DescriptionResource:
    """GET /openapi.yaml: the description of the interface, as `application/yaml` (RFC 9512)."""

    protected = False
    method = "GET"

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type = falcon.MEDIA_YAML
        response.data = read_description()


@cache
def read_description() -> bytes:
    """The OpenAPI description, in YAML."""
    from importlib.resources import files

    return files("dkimctl.service").joinpath("openapi.yaml").read_bytes()


class Gate:
    """Falcon middleware: what a request must have before a resource sees it.

    A sound head; a valid bearer token if the resource's `protected` is true, which then finds the
    client's ID in `request.context.client_id` (401 and 403, interface 7.2); the resource's method.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Refuse a head that leaves doubts, which granian lets pass."""
        host, coding = request.env.get("HTTP_HOST", ""), request.get_header("Transfer-Encoding")
        if coding is not None:
            # The end of the body is in doubt, if there is a length as well (RFC 9112, 6.1).
            response.set_header("Connection", "close")
            if coding.strip(" \t").lower() != "chunked":
                raise falcon.HTTPBadRequest(description="Transfer-Encoding must be chunked.")
        # RFC 9112, section 3.2. Of several, granian makes one with commas.
        if "," in host or (not host and request.env.get("SERVER_PROTOCOL") == "HTTP/1.1"):
            response.set_header("Connection", "close")
            raise falcon.HTTPBadRequest(description="The request needs one Host.")

    def process_resource(
        self, request: falcon.Request, _response: object, resource: Any, _params: object
    ) -> None:
        if resource.protected:
            token = _authorization(request.auth, "bearer")
            if not token:
                raise falcon.HTTPUnauthorized(description="Unauthorized", challenges=["Bearer"])
            client_id = client_of_token(self._store, token, self._clock())
            if client_id is None:
                raise falcon.HTTPForbidden(description="Forbidden")
            request.context.client_id = client_id
        allowed = ["GET", "HEAD"] if resource.method == "GET" else [resource.method]
        if request.method not in allowed:  # OPTIONS as well
            raise falcon.HTTPMethodNotAllowed(allowed)

    def process_response(
        self, _request: object, response: falcon.Response, _resource: object, _succeeded: object
    ) -> None:
        response.render_body()  # while an error can still be answered with a 500


class Bodies:
    """Reads request bodies of up to `max_octets`, at most `at_once` at the same time.

    A body that comes slowly keeps a thread of the server, which has no time limit for it. So some
    threads are left for requests without a body.
    """

    def __init__(self, max_octets: int, at_once: int) -> None:
        self._max_octets = max_octets
        self._free = threading.BoundedSemaphore(at_once)

    def read(self, request: falcon.Request) -> bytes:
        """The whole body, sent with a length or in chunks.

        Raises falcon.HTTPContentTooLarge beyond the limit, without reading the rest.
        """
        length = request.content_length
        too_large = falcon.HTTPContentTooLarge(
            description=f"The body exceeds {self._max_octets} octets."
        )
        if (length or 0) > self._max_octets:
            raise too_large
        if not has_body(request):
            return b""
        if not self._free.acquire(blocking=False):
            raise falcon.HTTPServiceUnavailable(
                description="Too many requests are being received; retry later.", retry_after=5
            )
        try:
            stream = request.bounded_stream if length is not None else request.stream
            body = stream.read(self._max_octets + 1)
        finally:
            self._free.release()
        if len(body) > self._max_octets:
            raise too_large
        # The server gives what came before a malformed chunk, or before the client hung up.
        if len(body) < (1 if length is None else length):
            raise falcon.HTTPBadRequest(description="The body is incomplete.")
        return body


def has_body(request: falcon.Request) -> bool:
    """Whether the request has a body, as far as its head says."""
    if request.content_length is None:
        return request.get_header("Transfer-Encoding") is not None
    return request.content_length > 0


class TokenRefused(falcon.HTTPBadRequest):
    """400 to a token request, with one of the error codes of RFC 6749, section 5.2."""

    def __init__(self, error_code: str) -> None:
        super().__init__()
        self.error_code = error_code


class BadRequest(falcon.HTTPBadRequest):
    """400 to a registration request that is wrong as a whole."""

    def __init__(self, message: str) -> None:
        super().__init__(description=message)


def add_error_handlers(app: falcon.App[Any, Any]) -> None:
    """Have `app` answer every error as the interface says, in JSON."""

    def serialize(_: object, response: falcon.Response, error: falcon.HTTPError) -> None:
        """The error body of interface 7: JSON with `message`."""
        response.content_type = falcon.MEDIA_JSON
        response.media = {"message": error.description or HTTPStatus(error.status_code).phrase}

    def token_refused(_: Any, response: falcon.Response, refused: TokenRefused, _p: Any) -> None:
        """The body of interface 2.2, its Content-Type as in 4.1."""
        response.status = falcon.HTTP_BAD_REQUEST
        response.content_type = _TOKEN_ERROR_TYPE
        response.media = {"error": refused.error_code}

    def request_refused(_: Any, response: falcon.Response, refused: BadRequest, _p: Any) -> None:
        """A 400 has the shape of interface 2.4 as well (4.2), without entries."""
        response.status = falcon.HTTP_BAD_REQUEST
        response.media = {"items": [], "count": 0, "total": 0, "message": refused.description}

    def unexpected(request: falcon.Request, _: Any, error: Exception, _p: Any) -> None:
        fields = {"request_id": request.context.get("request_id")}
        _logger.error("a request failed: %s", describe_failure(error), extra={"fields": fields})
        raise falcon.HTTPInternalServerError(description="Internal Server Error")

    app.set_error_serializer(serialize)
    app.add_error_handler(TokenRefused, token_refused)
    app.add_error_handler(BadRequest, request_refused)
    app.add_error_handler(Exception, unexpected)


def _authorization(header: str | None, scheme: str) -> str:
    """The part of an Authorization header after the scheme; "" if it has another scheme.

    Only ASCII blanks are left out around it (RFC 9110, sections 5.6.3 and 11.4).
    """
    given, _, value = (header or "").partition(" ")
    return value.strip(" \t") if given.lower() == scheme else ""


def _basic_credentials(header: str | None) -> tuple[str, str] | None:
    """The client ID and secret of a Basic header (RFC 7617, section 2); None if it has none."""
    encoded = _authorization(header, "basic")
    try:
        octets = base64.b64decode(encoded, validate=True)
        decoded = octets.decode("utf-8")
    except ValueError:
        return None
    if base64.b64encode(octets).decode() != encoded:  # Python takes superfluous padding
        return None
    client_id, colon, secret = decoded.partition(":")
    return (client_id, secret) if colon else None


def _grant_type(content_type: str | None, body: bytes) -> str:
    """The only grant_type of the form; without a value it counts as missing (RFC 6749, 3.2)."""
    if (content_type or "").partition(";")[0].strip().lower() != _FORM:
        raise TokenRefused("invalid_request")
    try:
        parts = body.decode("ascii").split("&")
        fields = parse_qsl(
            "&".join(f"{part}=" if part == "grant_type" else part for part in parts),
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise TokenRefused("invalid_request") from None
    values = [value for name, value in fields if name == "grant_type"]
    if not values:
        raise _grant_type_missing()
    if len(values) > 1:
        raise TokenRefused("invalid_request")
    return values[0]


def _grant_type_missing() -> falcon.HTTPMethodNotAllowed:
    """The answer to a missing parameter (interface 7.1)."""
    return falcon.HTTPMethodNotAllowed(["POST"], description="grant_type is missing.")


def _requested_domains(body: bytes, max_domains: int) -> list[dict[str, Any]]:
    """The objects of `domains` in a registration request (interface 2.3), not yet validated.

    Raises RequestRefused if the request is wrong as a whole.
    """
    document = _decode_json(body)
    if not isinstance(document, dict):
        raise BadRequest("The body must be a JSON object.")
    domains = document.get("domains")
    if not isinstance(domains, list) or not all(isinstance(entry, dict) for entry in domains):
        raise BadRequest("domains must be an array of objects.")
    if not domains:
        raise BadRequest("domains is empty.")
    if len(domains) > max_domains:
        raise BadRequest(f"domains has {len(domains)} entries; at most {max_domains} are allowed.")
    return domains


def _decode_json(body: bytes) -> object:
    try:
        return _json_decoder.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.") from None
    except RecursionError:
        raise BadRequest("The body nests too deep.") from None
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(f"The body is not JSON: {location} cannot be read.") from None
    except ValueError:  # Python reads numbers of up to 4,300 digits
        raise BadRequest("A number in the body has too many digits.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(f"The body is not JSON: {name} is not a JSON number.")


# Made once: json.loads makes a decoder for each call with an option.
_json_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
