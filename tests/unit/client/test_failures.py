"""Which failures mean that nothing was processed, and what of them is told."""

from __future__ import annotations

import errno
import ssl

import httpx
import pytest

from dkimctl.client import failures
from dkimctl.errors import (
    AuthenticationError,
    ClientRefused,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    Throttled,
)

URL = "https://service.example/domain/dkim"
HERE = "https://127.0.0.1:8025/oauth2/token"


@pytest.mark.parametrize(
    ("status", "kind", "at_login"),
    [(400, RequestRefused, ClientRefused), (413, RequestRefused, NotProcessed),
     (422, RequestRefused, NotProcessed), (429, Throttled, NotProcessed),
     (401, MaybeProcessed, ClientRefused), (405, NoService, AuthenticationError),
     *((status, NoService, NoService)
       for status in (300, 301, 302, 307, 308, 399, 404, 406, 407, 410, 411, 415)),
     # A gateway may answer 408 for a request that is still being processed.
     *((status, MaybeProcessed, NotProcessed)
       for status in (100, 204, 299, 402, 408, 409, 418, 499, 500, 503))],
)  # fmt: skip
def test_what_a_status_means(status, kind, at_login):
    registering = failures.registration_error(URL, status, "busy", 7.0)
    login = failures.token_error(URL, status, "busy", 7.0)
    assert (type(registering), type(login)) == (kind, at_login)
    assert "busy" in registering.message
    assert "busy" in login.message
    if status in (429, 503):
        assert registering.retry_after == login.retry_after == 7.0


def test_the_text_of_a_response_that_is_not_http_is_not_told():
    """It may quote the token, which the response echoes."""
    quoting = failures.cut_off(URL, httpx.RemoteProtocolError("illegal status line: Bearer abc"))
    assert "abc" not in quoting.message
    assert "reset" in failures.cut_off(URL, httpx.ReadError("connection reset")).message


def wrapped(cause: Exception) -> httpx.ConnectError:
    """As the HTTP library raises it."""
    error = httpx.ConnectError("it failed")
    error.__cause__ = ValueError("of another library")
    error.__cause__.__context__ = cause
    return error


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "certificate has expired"
NO_HANDSHAKE = (
    wrapped(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
    httpx.ConnectTimeout("_ssl.c:989: The handshake operation timed out"),
)
REFUSED_BY_PROXY = "cannot reach https://service.example: the proxy refused the connection"


@pytest.mark.parametrize(
    ("url", "error", "kind", "message", "hint"),
    [(URL, wrapped(UNTRUSTED), NoService,
      "cannot trust https://service.example: certificate has expired", "--ca-bundle"),
     (URL, wrapped(OSError(errno.EMFILE, "Too many")), NotProcessed, "too many open files",
      "ulimit -n"),
     (URL, httpx.ConnectError("no route"), NotProcessed, "no route", "check the network"),
     *((URL, error, NotProcessed, "it does not answer the TLS handshake", "check the network")
       for error in NO_HANDSHAKE),
     *((HERE, error, NotProcessed, "it does not answer the TLS handshake",
        "write http://127.0.0.1:8025 in --auth-url, if it does not use TLS")
       for error in NO_HANDSHAKE),
     # Of the answer of a proxy only the status is told.
     (URL, httpx.ProxyError("407 Proxy Authentication"), NotProcessed,
      f"{REFUSED_BY_PROXY} (407)", "the proxy"),
     *((URL, httpx.ProxyError(text), NotProcessed, REFUSED_BY_PROXY, "the proxy")
       for text in ("Bearer abc", "4077 x", ""))],
)  # fmt: skip
def test_what_was_not_sent_is_tried_again_unless_it_is_not_trusted(url, error, kind, message, hint):
    told = failures.unreachable(url, error)
    assert type(told) is kind
    assert told.message.endswith(message)
    assert hint in told.hint
