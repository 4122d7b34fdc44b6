"""The errors of failed requests: no response, or a response with an error status (interface 7).

No message contains the text of an error that may quote what was sent or received. A `detail` is
the service's own message, without secrets, or "".
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx

from dkimctl.errors import (
    AuthenticationError,
    ClientRefused,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    ServiceError,
    Throttled,
    TokenRejected,
)

# Nothing at that address can have registered anything. Other 4xx may come from a gateway that
# gave up waiting for a request that is still being processed.
_NO_SUCH_SERVICE = (404, 405, 406, 407, 410, 411, 415)


def unreachable(url: str, error: Exception) -> NotProcessed:
    message = f"cannot reach {host_of(url)}: {_reason(error)}"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return NoService(message, hint="for a private CA, name its PEM file in --ca-bundle")
    return NotProcessed(
        message,
        hint="check the network, the proxy and the profile's URLs: `dkimctl status` shows them",
    )


def timed_out(url: str) -> MaybeProcessed:
    return MaybeProcessed(
        f"{host_of(url)} did not respond in time", hint="try again later, or raise --timeout"
    )


def cut_off(url: str, error: Exception) -> MaybeProcessed:
    # Only a NetworkError's text quotes neither the request, with its token, nor the response.
    reason = f": {error}" if isinstance(error, httpx.NetworkError) else ", or is not HTTP"
    return MaybeProcessed(
        f"the response from {host_of(url)} was cut off{reason}",
        hint="try again later; check the profile's URLs if it persists",
    )


def not_loopback(url: str, address: str) -> NoService:
    return NoService(
        f"{host_of(url)} resolves to {address}, which is not this machine; "
        "http:// is allowed to this machine only",
        hint="use https://... in the profile's URLs",
    )


def token_error(
    url: str, status: int, detail: str, retry_after: float | None
) -> AuthenticationError | NotProcessed:
    """For any status of the token endpoint but 200 (interface 7.1)."""
    if status in (400, 401, 403):
        return ClientRefused(
            detail,
            hint="the secret is wrong or the client was deleted; run `dkimctl login` again",
        )
    if status == 405:
        return AuthenticationError(
            f"{url} does not issue tokens (405){_suffix(detail)}", hint="check --auth-url"
        )
    kind = NoService if _is_no_service(status) else NotProcessed
    return kind(
        f"{url} answered {status}{_suffix(detail)}",
        hint="try again later; check --auth-url if it persists",
        retry_after=retry_after,
    )


def token_rejected(status: int, detail: str, body: bytes) -> TokenRejected:
    """For 401 and 403 on a request with a token (interface 7.2)."""
    if status == 401:
        hint = "the service received no token; check --base-url and any proxy in between"
    else:
        hint = (
            "a temporarily disabled client still gets tokens but cannot use them: "
            "ask the service's operator whether the client is active"
        )
    message = f"the service refused the access token ({status}){_suffix(detail)}"
    return TokenRejected(message, hint=hint, status=status, body=body)


def registration_error(
    status: int, detail: str, retry_after: float | None
) -> ServiceError | RequestRefused:
    """For a response to a registration that has no items (interface 7.3, 7.4)."""
    if status in (400, 413, 422):
        return RequestRefused(str(status), detail)
    if status == 429:
        return Throttled(
            f"the service is limiting requests (429){_suffix(detail)}",
            hint="try again later, with a lower --concurrency if it persists",
            retry_after=retry_after,
        )
    message = f"the service answered {status}{_suffix(detail)}"
    if _is_no_service(status):
        return NoService(message, hint="check --base-url")
    return MaybeProcessed(
        message, hint="try again later; check --base-url", retry_after=retry_after
    )


def host_of(url: str) -> str:
    return urlsplit(url).netloc


def _reason(error: Exception) -> str:
    """The reason of an error, if its text can contain neither a header nor a response."""
    if isinstance(error, httpx.ConnectError | httpx.TimeoutException | UnicodeError):
        return str(error)
    if isinstance(error, httpx.ProxyError):
        return f"the proxy refused the connection{_proxy_status(error)}"
    return "the request could not be sent"


def _proxy_status(error: httpx.ProxyError) -> str:
    """Only the status: the rest of a proxy's response could quote what it was sent."""
    status, _, _ = str(error).partition(" ")
    return f" ({status})" if re.fullmatch("[1-5][0-9][0-9]", status) else ""


def _suffix(detail: str) -> str:
    return f": {detail}" if detail else ""


def _is_no_service(status: int) -> bool:
    return status in _NO_SUCH_SERVICE or 300 <= status < 400
