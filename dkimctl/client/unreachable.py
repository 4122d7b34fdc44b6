"""Why a request could not be sent, and what to do about it."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from dkimctl.errors import NoService, NotProcessed

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


def unreachable(url: str, error: Exception) -> NotProcessed:
    """The error for a request that was certainly not sent."""
    known = (_of_cause(url, cause) for cause in _causes(error))
    if explained := next(filter(None, known), None):
        return explained
    if _NO_HANDSHAKE in str(error):
        return _no_handshake(url)
    message = f"cannot reach {origin_of(url)}: {_reason(error)}"
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
    from dkimctl.text.urls import is_loopback

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
