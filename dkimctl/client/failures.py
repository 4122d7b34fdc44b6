"""The errors of failed requests: not sent, no response, or one with an error status (interface 7).

No message contains the text of an error that may quote what was sent or received. A `detail` is
the service's own message, without secrets, or "".
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

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
from dkimctl.text.urls import is_loopback

_CHECK = "check the network, the proxy and the profile's URLs: `dkimctl status` shows them"
# Of X509_V_ERR_*: what is wrong with a certificate, and what to do. Of others, OpenSSL says it.
_CA_BUNDLE = "for a private CA, name its PEM file in --ca-bundle"
_PRIVATE = "if you trust it, name the PEM file of its CA in --ca-bundle FILE"
_HOST = "check the host name in {option}: it must be one that the certificate names"
_CERTIFICATE_FAULTS = {
    9: ("is not valid yet", "check this machine's clock"),
    10: ("has expired", "ask the server's operator to renew it, and check this machine's clock"),
    18: ("is self-signed", _PRIVATE),
    19: ("is of a CA that this machine does not trust", _PRIVATE),
    20: ("is of a CA that this machine does not know", _PRIVATE),
    62: ("is for another host name", _HOST),
    64: ("is for another IP address", _HOST),
}
# What OpenSSL makes of an answer that is not TLS.
_NOT_TLS = "WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL|PACKET_LENGTH|HTTP_REQUEST"
_NO_HANDSHAKE = "handshake operation timed out"
_SPEAKS_TLS = rb"(?i)plain HTTP|HTTP request to an HTTPS"  # nginx and Apache; Go
# Nothing at that address can have registered anything. Other 4xx may come from a gateway that
# gave up waiting for a request that is still being processed.
_NO_SUCH_SERVICE = (404, 405, 406, 407, 410, 411, 415)
_TLS_ALERT = r"b'\x15\x03"  # in place of an HTTP status line, as the HTTP library quotes it


def unreachable(url: str, error: Exception) -> NotProcessed:
    """The error for a request that was certainly not sent."""
    known = (_of_cause(url, cause) for cause in _causes(error))
    if explained := next(filter(None, known), None):
        return explained
    if _NO_HANDSHAKE in str(error):
        return _no_handshake(url)
    message = f"cannot reach {origin_of(url)}: {_why_unsent(error)}"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return NoService(message, hint=_CA_BUNDLE)
    return NotProcessed(message, hint=_CHECK)


def _of_cause(url: str, cause: BaseException) -> NotProcessed | None:
    """The error for what the system or OpenSSL says; None if that is not of a kind known here."""
    match cause:
        case ssl.SSLCertVerificationError():
            return _untrusted(url, cause)
        case ssl.SSLEOFError():
            return _no_handshake(url)
        case ssl.SSLError() if re.search(_NOT_TLS, cause.reason or ""):
            return _without_tls(url)
        case ConnectionRefusedError():
            return NotProcessed(
                f"cannot reach {origin_of(url)}: the connection was refused",
                hint=f"nothing listens there: check host and port of {option_of(url)}, "
                "and the proxy if there is one",
            )
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            message = f"cannot reach {origin_of(url)}: too many open files"
            return NotProcessed(message, hint="raise the limit, such as with `ulimit -n 4096`")
        case socket.gaierror() if cause.errno != socket.EAI_AGAIN:
            return NotProcessed(
                f"cannot reach {origin_of(url)}: there is no such host",
                hint=f"check the host name in {option_of(url)}, and that of the proxy if any",
            )
    return None


def requires_tls(url: str, status: int, body: bytes) -> NoService | None:
    """The error for the answer of a server that was asked without TLS, and wants it."""
    if not url.startswith("http:") or status != 400 or not re.search(_SPEAKS_TLS, body[:4096]):
        return None
    return NoService(
        f"the server at {origin_of(url)} uses TLS",
        hint=f"write https:// in {option_of(url)}",
    )


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, which has no user name."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"


def option_of(url: str) -> str:
    """The option that sets the URL's beginning."""
    return "--auth-url" if urlsplit(url).path.endswith("/oauth2/token") else "--base-url"


def _untrusted(url: str, error: ssl.SSLCertVerificationError) -> NoService:
    code = getattr(error, "verify_code", 0)
    what, hint = _CERTIFICATE_FAULTS.get(code) or (
        f"is not valid: {error.verify_message}",
        _CA_BUNDLE,
    )
    return NoService(
        f"cannot trust {origin_of(url)}: its certificate {what}",
        hint=hint.format(option=option_of(url)),
    )


def _without_tls(url: str) -> NoService:
    return NoService(
        f"the server at {origin_of(url)} does not use TLS",
        hint=_http_hint(url)
        or f"check the port in {option_of(url)}, and the proxy if there is one",
    )


def _no_handshake(url: str) -> NotProcessed:
    """A server without TLS may wait for the rest of a request, or end the connection."""
    hint = _http_hint(url)
    return NotProcessed(
        f"cannot reach {origin_of(url)}: it does not answer the TLS handshake",
        hint=f"{hint}, if it does not use TLS" if hint else _CHECK,
    )


def _http_hint(url: str) -> str:
    """What to write for a server of this machine that does not use TLS; "" for others."""
    if not is_loopback(urlsplit(url).hostname or ""):
        return ""
    here = origin_of(url).replace("https:", "http:")
    return f"for this machine, write {here} in {option_of(url)}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that led to it: the HTTP library wraps the system's."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def _why_unsent(error: Exception) -> str:
    """The reason of an error, if its text can contain neither a header nor a response."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.TimeoutException | UnicodeError):
        return str(error)
    if not isinstance(error, httpx.ProxyError):
        return "the request could not be sent"
    # Only the status: the rest of a proxy's response could quote what it was sent.
    status, _, _ = str(error).partition(" ")
    told = f" ({status})" if re.fullmatch("[1-5][0-9][0-9]", status) else ""
    return f"the proxy refused the connection{told}"


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
    import httpx

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
