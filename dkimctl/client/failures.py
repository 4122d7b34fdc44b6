"""The errors of failed requests: not sent, no response, or one with an error status (interface 7).

No message contains the text of an error that may quote what was sent or received. A `detail` is
the service's own message, without secrets, or "".
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from urllib.parse import urlsplit

from dkimctl.addresses import is_loopback
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
from dkimctl.text import format_duration

_CHECK = "check the network and the profile's URLs: `dkimctl status` shows them"
_CHECK_PROXY = "check the address of the proxy, and that it runs and lets you pass"
_PRIVATE_CA = "if you trust it, name the PEM file of its CA in --ca-bundle FILE"
_OTHER_HOST = "check the host name in {option}: it must be one that the certificate names"
_CERTIFICATES = {  # X509_V_ERR_*: not valid yet, expired, for another host name, another address
    9: "check this machine's clock",
    10: "ask the server's operator to renew it, and check this machine's clock",
    62: _OTHER_HOST,
    64: _OTHER_HOST,
}
# Errors of httpx, which few commands import, whose text quotes neither a request nor a response.
_HARMLESS = frozenset(
    ("ConnectError", "ConnectTimeout", "PoolTimeout", "ReadError", "WriteError", "CloseError")
)
# What OpenSSL makes of an answer that is not TLS.
_NOT_TLS = "WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL|PACKET_LENGTH|HTTP_REQUEST"
_SPEAKS_TLS = rb"(?i)plain HTTP|HTTP request to an HTTPS"  # nginx and Apache; Go
_TLS_ALERT = r"b'\x15\x03"  # in place of an HTTP status line, as the HTTP library quotes it
# A GET changes nothing (RFC 9110 section 9.2.1). Of this path only POST is specified (interface
# 4.2), so any answer will do that does not say that there is nothing.
TEST_PATH = "/domain/dkim"
_HTML = rb"(?i)\s*<(?:!doctype|html|head|body)"


def unreachable(url: str, error: Exception, proxy: str = "") -> NotProcessed:
    """The error for a request that was certainly not sent; `proxy`: what it would go through."""
    origin, option = origin_of(url), option_of(url)
    where = f"{origin} through the proxy {proxy}" if proxy else origin
    without_tls = ""  # what to write for a server of this machine that does not use TLS
    if is_loopback(urlsplit(url).hostname or ""):
        without_tls = f"for this machine, write {origin.replace('https:', 'http:')} in {option}"
    handshake = "it does not answer the TLS handshake"
    # The HTTP library wraps what the system or OpenSSL says.
    cause: BaseException | None = error
    text = hint = ""
    for _ in range(10):
        match cause:
            case ssl.SSLCertVerificationError():
                message = f"cannot trust {where}: {cause.verify_message}"
                advice = _CERTIFICATES.get(getattr(cause, "verify_code", 0), _PRIVATE_CA)
                return NoService(message, hint=advice.format(option=option))
            case ssl.SSLEOFError():  # of a server without TLS, which ends the connection
                text = handshake
            case ssl.SSLError() if re.search(_NOT_TLS, cause.reason or ""):
                message = f"the server at {where} does not use TLS"
                return NoService(message, hint=without_tls or f"check the port in {option}")
            case ConnectionRefusedError():
                text = "the connection was refused"
                hint = f"nothing listens there: check host and port of {option}"
            case OSError(errno=errno.EMFILE | errno.ENFILE):
                text = "too many open files"
                hint = "raise the limit, such as with `ulimit -n 4096`"
            case socket.gaierror() if cause.errno != socket.EAI_AGAIN:
                text = "there is no such host"
                hint = f"check the host name in {option}"
        if text or cause is None:
            break
        cause = cause.__cause__ or cause.__context__
    if proxy and isinstance(cause, ConnectionRefusedError | socket.gaierror):
        hint = _CHECK_PROXY  # no other host is connected to
    # The text of other errors can contain a header or a response, such as that of a proxy.
    kind = type(error).__name__
    if not text and kind == "ProxyError":
        status = re.match("[1-5][0-9][0-9](?= |$)", str(error))
        text = f"the proxy refused the connection{f' ({status[0]})' if status else ''}"
        hint = _CHECK_PROXY
    elif not text and "handshake operation timed out" in str(error):
        text = handshake  # a server without TLS may wait for the rest of a request
    elif not text:
        is_harmless = kind in _HARMLESS or isinstance(error, UnicodeError)
        text = str(error) if is_harmless else "the request could not be sent"
    if text == handshake and without_tls:
        hint = f"{without_tls}, if it does not use TLS"
    return NotProcessed(f"cannot reach {where}: {text}", hint=hint or _CHECK)


def _or_proxy(proxy: str) -> str:
    return f"; it may be the proxy {proxy}" if proxy else ""


def requires_tls(url: str, status: int, body: bytes) -> NoService | None:
    """The error for the answer of a server that was asked without TLS, and wants it."""
    if url.startswith("http:") and status == 400 and re.search(_SPEAKS_TLS, body[:4096]):
        return _uses_tls(url)
    return None


def strange_answer(status: int, body: bytes) -> str:
    """What was answered to a GET of TEST_PATH, or "" if it may be the service."""
    if status >= 500:
        return f"answered {status} to a test request"
    is_page = status != 405 and re.match(_HTML, body)  # 405: whatever its body
    if is_page or 300 <= status < 400 or status in (404, 410):
        page = " with a web page" if is_page else ""
        return f"answered {status}{page} to a test request, as if it were not the service"
    return ""


def _uses_tls(url: str) -> NoService:
    hint = f"write https:// in {option_of(url)}"
    return NoService(f"the server at {origin_of(url)} uses TLS", hint=hint)


def timed_out(url: str, proxy: str = "") -> MaybeProcessed:
    return MaybeProcessed(
        f"{urlsplit(url).netloc} did not respond in time",
        hint=f"try again later, or raise --timeout{_or_proxy(proxy)}",
    )


def cut_off(url: str, error: Exception, proxy: str = "") -> MaybeProcessed | NoService:
    if url.startswith("http:") and _TLS_ALERT in str(error):
        return _uses_tls(url)
    reason = f": {error}" if type(error).__name__ in _HARMLESS else ", or is not HTTP"
    message = f"the response from {origin_of(url)} was cut off{reason}"
    hint = "try again later; check the profile's URLs, http:// or https://, if it persists"
    return MaybeProcessed(message, hint=hint + _or_proxy(proxy))


def not_loopback(url: str, address: str) -> NoService:
    return NoService(
        f"{urlsplit(url).netloc} resolves to {address}, which is not this machine; "
        "http:// is allowed to this machine only",
        hint="use https://... in the profile's URLs",
    )


def token_error(
    url: str, status: int, detail: str, retry_after: float | None
) -> AuthenticationError | NotProcessed:
    """For any status of the token endpoint but 200 (interface 7.1)."""
    said = f": {detail}" if detail else ""
    if status in (400, 401, 403):
        hint = "the secret is wrong or the client was deleted; run `dkimctl login` again"
        return ClientRefused(detail, hint=hint)
    if status == 405:
        message = f"{url} does not issue tokens (405){said}"
        return AuthenticationError(message, hint="check --auth-url")
    if status == 429:
        wait = "" if retry_after is None else f", for {format_duration(retry_after)}"
        message = f"{urlsplit(url).netloc} refuses logins for now (429){wait}{said}"
        hint = "try again later; check that no program uses a wrong secret"
        return NotProcessed(message, hint=hint, retry_after=retry_after)
    message = f"{url} answered {status}{said}"
    if hint := _no_service_hint(url, "--auth-url", "/oauth2/token", status):
        return NoService(message, hint=hint)
    hint = "try again later; check --auth-url if it persists"
    return NotProcessed(message, hint=hint, retry_after=retry_after)


def token_rejected(status: int, detail: str, body: bytes) -> TokenRejected:
    """For 401 and 403 on a request with a token (interface 7.2)."""
    hint = (
        "a temporarily disabled client still gets tokens but cannot use them: "
        "ask the service's operator whether the client is active"
    )
    if status == 401:
        hint = "the service received no token; check --base-url and any proxy in between"
    message = f"the service refused the access token ({status}){f': {detail}' if detail else ''}"
    return TokenRejected(message, hint=hint, status=status, body=body)


def registration_error(
    url: str, status: int, detail: str, retry_after: float | None
) -> ServiceError | RequestRefused:
    """For a response to a registration that has no items (interface 7.3, 7.4)."""
    said = f": {detail}" if detail else ""
    if status in (400, 413, 422):
        return RequestRefused(str(status), detail)
    if status == 429:
        message = f"the service is limiting requests (429){said}"
        hint = "try again later, with a lower --concurrency if it persists"
        return Throttled(message, hint=hint, retry_after=retry_after)
    if hint := _no_service_hint(url, "--base-url", "/domain/dkim", status):
        return NoService(f"{url} answered {status}{said}", hint=hint)
    message = f"the service answered {status}{said}"
    hint = "try again later; check --base-url"
    return MaybeProcessed(message, hint=hint, retry_after=retry_after)


def _no_service_hint(url: str, option: str, path: str, status: int) -> str:
    """What to do where nothing of the service answers; "" if the status does not say so."""
    # Nothing at that address can have registered anything. Other 4xx may come from a gateway that
    # gave up waiting for a request that is still being processed.
    if not (status in (404, 405, 406, 407, 410, 411, 415) or 300 <= status < 400):
        return ""
    if url.count(path) > 1:
        return f"write {option} without {path}, which is added to it"
    if status < 400:
        return f"redirects are not followed; check {option}, its http:// or https:// and its path"
    return f"check {option}, to which {path} is added"


def unusable(url: str, error: Exception, body: bytes) -> str:
    """What is wrong with a response of status 200. Nothing of it is quoted."""
    what = "it is a web page, not JSON" if body.lstrip()[:1] == b"<" else str(error)
    return f"the response from {url} is not usable: {what}"


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, which has no user name."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"


def option_of(url: str) -> str:
    """The option that sets the URL's beginning."""
    return "--auth-url" if urlsplit(url).path.endswith("/oauth2/token") else "--base-url"
