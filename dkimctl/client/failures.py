"""The errors of failed requests: no response, or a response with an error status (interface 7).

No message contains the text of an error that may quote what was sent or received. A `detail` is
the service's own message, without secrets, or "".
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from dkimctl.client.unreachable import option_of, origin_of
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
_TLS_ALERT = r"b'\x15\x03"  # in place of an HTTP status line, as the HTTP library quotes it


def timed_out(url: str) -> MaybeProcessed:
    return MaybeProcessed(
        f"{host_of(url)} did not respond in time", hint="try again later, or raise --timeout"
    )


def cut_off(url: str, error: Exception) -> MaybeProcessed | NoService:
    message = f"the response from {origin_of(url)} was cut off"
    if not url.startswith("http:"):
        hint = "try again later; check the profile's URLs if it persists"
        return MaybeProcessed(message + _reason(error), hint=hint)
    https = f"write https:// in {option_of(url)}"
    if _TLS_ALERT in str(error):
        return NoService(f"the server at {origin_of(url)} uses TLS", hint=https)
    return MaybeProcessed(
        f"{message}{_reason(error)}; does the server use TLS?",
        hint=f"if so, {https}; else try again later",
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
    if status == 429:
        return _too_many_logins(url, detail, retry_after)
    message = f"{url} answered {status}{_suffix(detail)}"
    if _is_no_service(status):
        return NoService(message, hint=_url_hint(url, "--auth-url", "/oauth2/token", status))
    return NotProcessed(
        message, hint="try again later; check --auth-url if it persists", retry_after=retry_after
    )


def _too_many_logins(url: str, detail: str, retry_after: float | None) -> NotProcessed:
    """The service says so after failed logins; then even the right secret does not help."""
    wait = "" if retry_after is None else f", for {retry_after:.0f} s"
    return NotProcessed(
        f"{host_of(url)} refuses logins for now (429){wait}{_suffix(detail)}",
        hint="try again later; too many failed logins are a reason: check that no program "
        "uses a wrong secret",
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
    url: str, status: int, detail: str, retry_after: float | None
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
    if _is_no_service(status):
        hint = _url_hint(url, "--base-url", "/domain/dkim", status)
        return NoService(f"{url} answered {status}{_suffix(detail)}", hint=hint)
    message = f"the service answered {status}{_suffix(detail)}"
    return MaybeProcessed(
        message, hint="try again later; check --base-url", retry_after=retry_after
    )


def host_of(url: str) -> str:
    return urlsplit(url).netloc


def _reason(error: Exception) -> str:
    """Only a NetworkError's text quotes neither the request, with its token, nor the response."""
    return f": {error}" if isinstance(error, httpx.NetworkError) else ", or is not HTTP"


def _suffix(detail: str) -> str:
    return f": {detail}" if detail else ""


def unusable(url: str, error: Exception, body: bytes) -> str:
    """What is wrong with a response of status 200. Nothing of it is quoted."""
    what = "it is a web page, not JSON" if body.lstrip()[:1] == b"<" else str(error)
    return f"the response from {url} is not usable: {what}"


def _url_hint(url: str, option: str, path: str, status: int) -> str:
    """What to do where nothing of the service answers; `path` was added to the option's URL."""
    if url.count(path) > 1:
        return f"write {option} without {path}, which is added to it"
    if 300 <= status < 400:
        return f"redirects are not followed; check {option}, its http:// or https:// and its path"
    return f"check {option}, to which {path} is added"


def _is_no_service(status: int) -> bool:
    return status in _NO_SUCH_SERVICE or 300 <= status < 400
