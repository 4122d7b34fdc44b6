"""The three endpoints (interface 4.1, 4.2, 4.3), and how they read request bodies."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import falcon

from dkimctl.service.clients import ClientCredentials, cancel_delivery
from dkimctl.service.database import Store
from dkimctl.service.http.addresses import TrustedProxies
from dkimctl.service.http.authorization import TOKEN_LIFETIME, authorization_value, issue_token
from dkimctl.service.http.errors import RequestRefused, TokenRefused
from dkimctl.service.http.failed_logins import LoginGuard
from dkimctl.service.http.validation import validate_entry
from dkimctl.service.key_pairs import KeysNotInTime
from dkimctl.service.registrations import Registrar

_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100


class TokenResource:
    """POST /oauth2/token (interface 4.1, 5.1, 7.1): issues tokens for client credentials."""

    protected = False
    method = "POST"

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        max_body: int,
        guard: LoginGuard,
        proxies: TrustedProxies,
    ) -> None:
        self._store = store
        self._clock = clock
        self._max_body = max_body
        self._guard = guard
        self._proxies = proxies

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.set_header("Cache-Control", "no-store")
        grant_type = _grant_type(request.content_type, _read_body(request, self._max_body))
        client_id = self._authenticated_client(request)
        if grant_type != "client_credentials":
            raise TokenRefused("unsupported_grant_type")
        response.media = {
            "access_token": issue_token(self._store, client_id, self._clock()),
            "token_type": "Bearer",
            "expires_in": TOKEN_LIFETIME,
        }

    def _authenticated_client(self, request: falcon.Request) -> str:
        credentials = _basic_credentials(request.auth)
        address = self._proxies.client_address(request.env)
        if not self._guard.admits(credentials, address) or credentials is None:
            request.context.failed_login = True
            raise TokenRefused("invalid_client")
        request.context.client_id = credentials.client_id
        return credentials.client_id


class DkimResource:
    """POST /domain/dkim (interface 4.2, 7.3): registers signing domains for the token's client."""

    protected = True
    method = "POST"

    def __init__(self, registrar: Registrar, max_domains: int, max_body: int) -> None:
        self._registrar = registrar
        self._max_domains = max_domains
        self._max_body = max_body

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        domains = _requested_domains(_read_body(request, self._max_body), self._max_domains)
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


def _basic_credentials(header: str | None) -> ClientCredentials | None:
    """The client ID and secret of a Basic header (RFC 7617, section 2); None if it has none."""
    encoded = authorization_value(header, "basic")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode("utf-8")
    except ValueError:
        return None
    client_id, colon, secret = decoded.partition(":")
    return ClientCredentials(client_id, secret) if colon else None


def _grant_type(content_type: str | None, body: bytes) -> str:
    """The only grant_type of the form; without a value it counts as missing (RFC 6749, 3.2)."""
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


def _read_body(request: falcon.Request, max_octets: int) -> bytes:
    """The whole body, sent with a length or in chunks.

    Raises falcon.HTTPContentTooLarge beyond `max_octets`, without reading the rest.
    """
    if (request.content_length or 0) > max_octets:
        raise _too_large(max_octets)
    is_chunked = request.content_length is None and request.get_header("Transfer-Encoding")
    stream = request.stream if is_chunked else request.bounded_stream
    body = stream.read(max_octets + 1)
    if len(body) > max_octets:
        raise _too_large(max_octets)
    return body


def _too_large(max_octets: int) -> falcon.HTTPContentTooLarge:
    return falcon.HTTPContentTooLarge(description=f"The body exceeds {max_octets} octets.")


def _requested_domains(body: bytes, max_domains: int) -> list[dict[str, Any]]:
    """The objects of `domains` in a registration request (interface 2.3), not yet validated.

    Raises RequestRefused if the request is wrong as a whole.
    """
    document = _decode_json(body)
    if not isinstance(document, dict):
        raise _refused("The body must be a JSON object.")
    domains = document.get("domains")
    if not isinstance(domains, list) or not all(isinstance(entry, dict) for entry in domains):
        raise _refused("domains must be an array of objects.")
    if not domains:
        raise _refused("domains is empty.")
    if len(domains) > max_domains:
        raise _refused(f"domains has {len(domains)} entries; at most {max_domains} are allowed.")
    return domains


def _decode_json(body: bytes) -> object:
    try:
        return _json_decoder.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise _refused("The body is not UTF-8.") from None
    except RecursionError:
        raise _refused("The body nests too deep.") from None
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise _refused(f"The body is not JSON: {location} cannot be read.") from None
    except ValueError:  # Python reads numbers of up to 4,300 digits
        raise _refused("A number in the body has too many digits.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise _refused(f"The body is not JSON: {name} is not a JSON number.")


def _refused(message: str) -> RequestRefused:
    return RequestRefused(description=message)


# Made once: json.loads makes a decoder for each call with an option.
_json_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
