"""The endpoints (interface 4), how they read requests, and their error answers (interface 7)."""

from __future__ import annotations

import base64
import importlib.resources
import json
import logging
import threading
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import falcon

from dkimctl.service import clients
from dkimctl.service.access_log import describe_failure
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KeysNotInTime
from dkimctl.service.registrations import KeysMaker, register, validate_entry

# The endpoint of each path, as the suffix of its methods, and these.
ENDPOINTS = {
    "/oauth2/token": ("token", ["POST"]),
    "/domain/dkim": ("dkim", ["POST"]),
    "/send/{delivery_id}": ("delivery", ["DELETE"]),
    "/openapi.yaml": ("description", ["GET", "HEAD"]),
    "/healthz": ("alive", ["GET", "HEAD"]),
    "/readyz": ("ready", ["GET", "HEAD"]),
}
_PROTECTED = {"/domain/dkim", "/send/{delivery_id}"}  # by a bearer token
_ENTRY = 2048  # octets; the longest names take about 600
_MIN_BODY, _MAX_BODY = 128 * 1024, 1024 * 1024

_logger = logging.getLogger(__name__)


class Api:
    """The endpoints of the interface, and its description.

    It is also the Falcon middleware that decides which requests get to an endpoint: those with a
    sound head, a valid bearer token where the path needs one (401 and 403, interface 7.2), and a
    method of the path. Endpoints find the token's client in `request.context.client_id`.
    """

    def __init__(
        self,
        store: Store,
        make_keys: KeysMaker,
        clock: Callable[[], float],
        *,
        max_domains: int,
        threads: int,
    ) -> None:
        self._store = store
        self._make_keys = make_keys
        self._clock = clock
        self._max_domains = max_domains
        self._max_body = min(max(_ENTRY * max_domains, _MIN_BODY), _MAX_BODY)
        # A body that comes slowly keeps a thread of the server, which has no time limit for it. So
        # some threads, if there are many, are left for requests without a body.
        self._free = threading.BoundedSemaphore(threads * 3 // 4 if threads >= 16 else threads)

    def on_post_token(self, request: falcon.Request, response: falcon.Response) -> None:
        """POST /oauth2/token (interface 4.1, 5.1, 7.1): issue a token for client credentials."""
        response.set_header("Cache-Control", "no-store")
        if not _has_body(request):
            raise _grant_type_missing()
        # Before the body is read: it may come slowly, and keeps a thread meanwhile.
        client_id, secret = _basic_credentials(request.auth) or ("", None)
        if secret is not None:
            request.context.client_id = client_id  # for the log, also if it is wrong
        if secret is None or not clients.authenticate(
            self._store, client_id, secret, clock=self._clock
        ):
            request.context.failed_login = True
            raise _token_refused("invalid_client")
        if _grant_type(request.content_type, self._read(request)) != "client_credentials":
            raise _token_refused("unsupported_grant_type")
        response.media = {
            "access_token": clients.issue_token(self._store, client_id, self._clock()),
            "token_type": "Bearer",
            "expires_in": clients.TOKEN_LIFETIME,
        }

    def on_post_dkim(self, request: falcon.Request, response: falcon.Response) -> None:
        """POST /domain/dkim (interface 4.2, 7.3): register domains for the token's client."""
        domains = _requested_domains(self._read(request), self._max_domains)
        entries = [validate_entry(domain) for domain in domains]
        try:
            client_id = request.context.client_id
            items = register(self._store, self._make_keys, self._clock, client_id, entries)
        except KeysNotInTime as error:  # nothing is registered
            raise falcon.HTTPTooManyRequests(
                description="The keys cannot be made in time; retry later.",
                retry_after=error.retry_after,
            ) from None
        request.context.registered = items
        response.media = {"items": items, "count": len(items), "total": len(items)}

    def on_delete_delivery(
        self, request: falcon.Request, response: falcon.Response, delivery_id: str
    ) -> None:
        """DELETE /send/<delivery_id> (interface 4.3, 5.3): cancel a delivery of the client."""
        if not clients.cancel_delivery(self._store, request.context.client_id, delivery_id):
            raise falcon.HTTPNotFound(description="There is no such delivery.")
        response.media = {"items": [{"delivery_id": delivery_id}]}

    def on_get_description(self, _request: falcon.Request, response: falcon.Response) -> None:
        """GET /openapi.yaml: the description of the interface (RFC 9512)."""
        response.content_type = falcon.MEDIA_YAML
        response.data = read_description()

    on_head_description = on_get_description

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

    def process_resource(self, request: falcon.Request, *_: object) -> None:
        path = request.uri_template or ""
        if path in _PROTECTED:
            token = _authorization(request.auth, "bearer")
            if not token:
                raise falcon.HTTPUnauthorized(description="Unauthorized", challenges=["Bearer"])
            client_id = clients.client_of_token(self._store, token, self._clock())
            if client_id is None:
                raise falcon.HTTPForbidden(description="Forbidden")
            request.context.client_id = client_id
        methods = ENDPOINTS[path][1]
        if request.method not in methods:  # OPTIONS as well
            raise falcon.HTTPMethodNotAllowed(methods)

    def process_response(self, _request: object, response: falcon.Response, *_: object) -> None:
        response.set_header("Date", formatdate(self._clock(), usegmt=True))
        response.render_body()  # while an error can still be answered with a 500

    def _read(self, request: falcon.Request) -> bytes:
        """The whole body, sent with a length or in chunks; of one that is too large, no more."""
        length, what = request.content_length, f"The body exceeds {self._max_body} octets."
        too_large = falcon.HTTPContentTooLarge(description=what)
        if (length or 0) > self._max_body:
            raise too_large
        if not _has_body(request):
            return b""
        if not self._free.acquire(blocking=False):
            raise falcon.HTTPServiceUnavailable(
                description="Too many requests are being received; retry later.", retry_after=5
            )
        try:
            stream = request.bounded_stream if length is not None else request.stream
            body = stream.read(self._max_body + 1)
        finally:
            self._free.release()
        if len(body) > self._max_body:
            raise too_large
        # The server gives what came before a malformed chunk, or before the client hung up.
        if len(body) < (1 if length is None else length):
            raise falcon.HTTPBadRequest(description="The body is incomplete.")
        return body


def read_description() -> bytes:
    """The OpenAPI description, in YAML."""
    return importlib.resources.files("dkimctl.service").joinpath("openapi.yaml").read_bytes()


def serialize_error(
    _request: falcon.Request, response: falcon.Response, error: falcon.HTTPError
) -> None:
    """The error body of interface 7: JSON with `message`."""
    response.content_type = falcon.MEDIA_JSON
    response.media = {"message": error.description or HTTPStatus(error.status_code).phrase}


def answer_unexpected(request: falcon.Request, _: object, error: Exception, *_p: object) -> None:
    """Log what failed, and answer 500 (interface 7.1, 7.3)."""
    fields = {"request_id": request.context.get("request_id")}
    _logger.error("a request failed: %s", describe_failure(error), extra={"fields": fields})
    raise falcon.HTTPInternalServerError(description="Internal Server Error")


def _token_refused(error: str) -> falcon.HTTPStatus:
    """400 with an error code of RFC 6749, section 5.2, in the shape of interface 2.2 and 4.1."""
    headers = {"Content-Type": "application/json;charset=UTF-8"}
    return falcon.HTTPStatus(400, headers, json.dumps({"error": error}))


def _grant_type_missing() -> falcon.HTTPMethodNotAllowed:
    """The answer to a missing parameter (interface 7.1)."""
    return falcon.HTTPMethodNotAllowed(["POST"], description="grant_type is missing.")


def _bad_request(message: str) -> falcon.HTTPStatus:
    """400 to a registration request, in the shape of interface 2.4 (4.2), without entries."""
    body = {"items": [], "count": 0, "total": 0, "message": message}
    return falcon.HTTPStatus(400, {"Content-Type": falcon.MEDIA_JSON}, json.dumps(body))


def _has_body(request: falcon.Request) -> bool:
    """Whether the request has a body, as far as its head says."""
    length, coding = request.content_length, request.get_header("Transfer-Encoding")
    return coding is not None if length is None else length > 0


def _authorization(header: str | None, scheme: str) -> str:
    """What follows the scheme, without ASCII blanks (RFC 9110, 5.6.3, 11.4); "" after another."""
    given, _, value = (header or "").partition(" ")
    return value.strip(" \t") if given.lower() == scheme else ""


def _basic_credentials(header: str | None) -> tuple[str, str] | None:
    """The client ID and secret of a Basic header (RFC 7617, section 2); None if it has none."""
    encoded = _authorization(header, "basic")
    try:
        octets = base64.b64decode(encoded, validate=True)
        client_id, colon, secret = octets.decode("utf-8").partition(":")
    except ValueError:
        return None
    # Python takes superfluous padding.
    is_sound = colon and base64.b64encode(octets).decode() == encoded
    return (client_id, secret) if is_sound else None


def _grant_type(content_type: str | None, body: bytes) -> str:
    """The only grant_type of the form; without a value it counts as missing (RFC 6749, 3.2)."""
    try:
        media_type = (content_type or "").partition(";")[0].strip().lower()
        if media_type != "application/x-www-form-urlencoded":
            raise ValueError
        parts = body.decode("ascii").split("&")
        form = "&".join(f"{part}=" if part == "grant_type" else part for part in parts)
        fields = parse_qsl(form, strict_parsing=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise _token_refused("invalid_request") from None
    values = [value for name, value in fields if name == "grant_type"]
    if not values:
        raise _grant_type_missing()
    if len(values) > 1:
        raise _token_refused("invalid_request")
    return values[0]


def _requested_domains(body: bytes, max_domains: int) -> list[dict[str, Any]]:
    """The objects of `domains` in a registration request (interface 2.3), not yet validated."""
    try:
        document = _json_decoder.decode(body.decode("utf-8"))
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise _bad_request(f"The body is not JSON: {location} cannot be read.") from None
    except (ValueError, RecursionError):
        raise _bad_request(
            "The body is not JSON in UTF-8, nests too deep, or has a number that is too long."
        ) from None
    domains = document.get("domains") if isinstance(document, dict) else None
    if not isinstance(domains, list) or not all(isinstance(entry, dict) for entry in domains):
        raise _bad_request("The body must be a JSON object; domains, an array of objects.")
    if not domains:
        raise _bad_request("domains is empty.")
    if len(domains) > max_domains:
        number = f"domains has {len(domains)} entries"
        raise _bad_request(f"{number}; at most {max_domains} are allowed.")
    return domains


# Made once: json.loads makes a decoder for each call with an option. int() refuses NaN and
# Infinity, which Python would read.
_json_decoder = json.JSONDecoder(parse_constant=int)
