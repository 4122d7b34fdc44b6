"""Notices to webhooks, over real connections to good and to hostile servers."""

from __future__ import annotations

import contextlib
import logging
import time

import pytest

import hostile
from dkimctl.client.http import HttpClient
from dkimctl.errors import ServiceError
from dkimctl.notices import post_notice

DOCUMENT = b'{"version": 1}\n'
SECRET_PATH = "/services/T0PSECRET?token=t0psecret"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def serve(tmp_path):
    """Start a server over TLS that answers with these pieces; gives it and its CA file."""
    with contextlib.ExitStack() as running:

        def start(say, host: str = "127.0.0.1", days: int = 30):
            bundle, tls = hostile.make_certificate(tmp_path, host, days=days)
            server = hostile.HostileServer(say, tls)
            running.callback(server.close)
            return server, str(bundle)

        yield start


def post(url: str, ca_bundle: str | None, timeout: float = 10.0) -> None:
    with HttpClient.over_network(timeout=timeout, ca_bundle=ca_bundle) as http:
        post_notice(http, url + SECRET_PATH, DOCUMENT)


def failure(url: str, ca_bundle: str | None, timeout: float = 10.0) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        post(url, ca_bundle, timeout)
    error = caught.value
    assert "secret" not in f"{error.message}{error.hint}".lower()
    assert url.removeprefix("https://") in error.message
    assert error.hint
    return error


def test_the_document_is_posted_as_json(serve):
    server, bundle = serve(lambda request: [OK])
    post(server.url, bundle)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /services/T0PSECRET?token=t0psecret HTTP/1.1\r\n")
    assert b"\r\ncontent-type: application/json" in head.lower()
    assert b"authorization" not in head.lower()
    assert body == DOCUMENT


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503])
def test_an_error_status_is_named(serve, status):
    answer = b"HTTP/1.1 %d x\r\nContent-Length: 9\r\n\r\nt0psecret" % status
    server, bundle = serve(lambda request: [answer])
    assert failure(server.url, bundle).message.endswith(f"answered {status}")


def test_redirects_are_not_followed(serve, scripted_server):
    location = f"Location: {scripted_server.url}/t0psecret".encode()
    answer = b"HTTP/1.1 307 Moved\r\n" + location + b"\r\nContent-Length: 0\r\n\r\n"
    server, bundle = serve(lambda request: [answer])
    error = failure(server.url, bundle)
    assert error.message.endswith("answered 307")
    assert "redirects are not followed" in error.hint
    assert scripted_server.requests == []


def test_an_endless_response_ends(serve):
    def endless(request):
        yield hostile.UNENDING
        yield from hostile.flood(b"x")

    server, bundle = serve(endless)
    assert "larger than 1 MiB" in failure(server.url, bundle).message


@pytest.mark.parametrize("text", [b"x", b"HTTP/1.1 200 OK", hostile.UNENDING])
def test_a_slow_response_ends_at_the_timeout(serve, text):
    server, bundle = serve(lambda request: hostile.drip(text))
    started = time.monotonic()
    assert "did not respond in time" in failure(server.url, bundle, timeout=0.5).message
    assert time.monotonic() - started < 10


def test_an_unknown_certificate_is_refused(serve):
    server, _ = serve(lambda request: [OK])
    assert "cannot trust" in failure(server.url, None).message
    assert server.requests == []


def test_the_log_has_no_secret_of_the_url(serve, caplog):
    server, bundle = serve(lambda request: [OK])
    with caplog.at_level(logging.DEBUG, "dkimctl.http"):
        post(server.url, bundle)
    assert f"POST {server.url}: 200" in caplog.text
    assert "t0psecret" not in caplog.text.lower()
