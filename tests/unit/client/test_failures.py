"""Which failures mean that nothing was processed, and what of them is told."""

from __future__ import annotations

import errno
import ssl

import httpx
import pytest

from dkimctl.client import failures
from dkimctl.client.failures import requires_tls, unreachable
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
NO_SERVICE = (300, 301, 302, 307, 308, 399, 404, 405, 406, 407, 410, 411, 415)


@pytest.mark.parametrize("status", [100, 204, 299, *NO_SERVICE, 402, 408, 409, 418, 499, 500, 503])
def test_only_where_there_is_no_service_a_registration_was_certainly_not_made(status):
    """A gateway may answer 408 for a request that is still being processed."""
    error = failures.registration_error(URL, status, "", 7.0)
    assert type(error) is (NoService if status in NO_SERVICE else MaybeProcessed)


@pytest.mark.parametrize(
    ("status", "kind", "at_login"),
    [(400, RequestRefused, ClientRefused), (413, RequestRefused, NotProcessed),
     (422, RequestRefused, NotProcessed), (429, Throttled, NotProcessed),
     (503, MaybeProcessed, NotProcessed), (401, MaybeProcessed, ClientRefused),
     (405, NoService, AuthenticationError), (404, NoService, NoService)],
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


def wrapped(cause: Exception, text: str = "it failed") -> httpx.ConnectError:
    """As the HTTP library raises it."""
    error = httpx.ConnectError(text)
    error.__cause__ = ValueError("of another library")
    error.__cause__.__context__ = cause
    return error


def test_a_certificate_that_is_not_trusted_is_not_tried_again():
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    untrusted.verify_message = "certificate has expired"
    error = unreachable(URL, wrapped(untrusted))
    assert type(error) is NoService
    assert error.message == "cannot trust https://service.example: certificate has expired"
    assert "--ca-bundle" in error.hint
    refused = unreachable(URL, httpx.ConnectError("Connection refused"))
    assert type(refused) is NotProcessed


@pytest.mark.parametrize(
    "error",
    [wrapped(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
     httpx.ConnectTimeout("_ssl.c:989: The handshake operation timed out")],
)  # fmt: skip
def test_a_server_that_does_not_answer_the_handshake_is_tried_again(error):
    there = unreachable(URL, error)
    assert type(there) is NotProcessed
    assert there.message.endswith("it does not answer the TLS handshake")
    assert "check the network" in there.hint
    here = unreachable("https://127.0.0.1:8025/oauth2/token", error)
    expected = "for this machine, write http://127.0.0.1:8025 in --auth-url, if it does not use TLS"
    assert here.hint == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [("407 Proxy Authentication Required", " (407)"), ("Bearer abc", ""), ("4077 x", ""), ("", "")],
)
def test_of_the_answer_of_a_proxy_only_the_status_is_told(text, reason):
    error = unreachable(URL, httpx.ProxyError(text))
    expected = f"cannot reach https://service.example: the proxy refused the connection{reason}"
    assert error.message == expected


@pytest.mark.parametrize(
    "body",
    [b"<html>The plain HTTP request was sent to HTTPS port</html>",
     b"Reason: You're speaking plain HTTP to an SSL-enabled server port.",
     b"Client sent an HTTP request to an HTTPS server.\n"],
)  # fmt: skip
def test_a_server_that_asks_for_tls(body):
    url = "http://127.0.0.1:8443/domain/dkim"
    error = requires_tls(url, 400, body)
    assert error.message == "the server at http://127.0.0.1:8443 uses TLS"
    assert error.hint == "write https:// in --base-url"
    assert requires_tls(url, 400, b'{"error": "invalid_client"}') is None
    assert requires_tls(url, 200, body) is None
    assert requires_tls(URL, 400, body) is None


def test_too_many_open_files_are_not_the_fault_of_the_network():
    error = unreachable(URL, wrapped(OSError(errno.EMFILE, "Too many open files")))
    assert error.message == "cannot reach https://service.example: too many open files"
    assert "ulimit -n" in error.hint
