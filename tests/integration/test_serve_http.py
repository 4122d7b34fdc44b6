"""What `dkimctl serve` answers to requests that break the rules of HTTP, or come slowly."""

from __future__ import annotations

import base64
import json
import re
import socket
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
FORM = b"grant_type=client_credentials"
TOKEN = (
    b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
)
REGISTER = b"POST /domain/dkim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\n"
LIMIT = 128 * 1024


@pytest.fixture(scope="module")
def live(live_service) -> Live:
    return Live(live_service)


class Live:
    """Connections to a service that runs, and the header of a client."""

    def __init__(self, service) -> None:
        account = service.create_client()
        pair = f"{account['DKIMCTL_CLIENT_ID']}:{account['DKIMCTL_CLIENT_SECRET']}"
        self.basic = b"Authorization: Basic " + base64.b64encode(pair.encode()) + b"\r\n"
        self._address = urlsplit(service.url).hostname, urlsplit(service.url).port

    def connect(self, data: bytes = b"") -> socket.socket:
        connection = socket.create_connection(self._address, timeout=10)
        connection.sendall(data)
        return connection

    def ask(self, data: bytes) -> tuple[int, bytes, bool]:
        """Status and body of the first answer, and whether the connection ends after it."""
        with self.connect() as connection:
            with suppress(ConnectionError):  # the rest is not read
                connection.sendall(data)
            answer = HTTPResponse(connection)
            answer.begin()
            body = answer.read()
            connection.settimeout(0.3)
            try:
                is_over = connection.recv(1) == b""
            except TimeoutError:
                is_over = False
            except ConnectionError:
                is_over = True
            return answer.status, body, is_over


@pytest.mark.parametrize(
    "request_",
    [b"GET /healthz HTTP/1.1\r\n\r\n", GET + b"Host: y\r\n\r\n", GET + b"Host: x\r\n\r\n",
     b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", b"GET /healthz\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
     b"GET /health\x7f HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n",
     b"GET /healthz?\x1b[2J HTTP/1.1\r\nHost: x\r\n\r\n", GET + b"X: a\rb\r\n\r\n",
     GET + b"X: a\nb\r\n\r\n", GET + b"X: a\0b\r\n\r\n", GET + b"X: a\r\n folded\r\n\r\n",
     GET + b"X : a\r\n\r\n", GET + b"Content-Length: x\r\n\r\n",
     GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
     GET + b"Transfer-Encoding: gzip\r\n\r\n",
     GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     GET.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_a_request_that_breaks_the_rules_is_400_and_the_last_one(live, request_):
    status, _, is_over = live.ask(request_)
    assert (status, is_over) == (400, True)


def test_http_1_0_needs_no_host(live):
    assert live.ask(b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 200


def test_an_answer_has_one_date(live):
    """By the clock of the service, and not another one of the server."""
    for request in (GET + b"\r\n", REGISTER + b"Content-Length: 0\r\n\r\n"):
        with live.connect(request) as connection:
            answer = HTTPResponse(connection)
            answer.begin()
        assert len(answer.headers.get_all("Date")) == 1


@pytest.mark.parametrize("headers", [b"x: y\r\n" * 101, b"x: " + b"y" * 100_000 + b"\r\n"])
def test_too_many_or_too_long_headers_are_431(live, headers):
    assert live.ask(GET + headers + b"\r\n")[0] == 431


@pytest.mark.parametrize(
    ("chunks", "status"),
    [(b"1d\r\n" + FORM + b"\r\n0\r\n\r\n", 200),
     (b"5\r\ngrant\r\n18\r\n" + FORM[5:] + b"\r\n0\r\n\r\n", 200),
     (b"zz\r\n" + FORM + b"\r\n0\r\n\r\n", 400), (b"-1\r\n\r\n", 400), (b"\r\n\r\n", 400),
     (b"ffffffffffffffffff\r\n", 400), (b"0\r\n\r\n", 400), (b"5\r\ngrantXX", 400),
     (b"20000\r\n" + b"x" * 0x20000 + b"\r\n1\r\nx\r\n0\r\n\r\n", 413)],
)  # fmt: skip
@pytest.mark.parametrize("length", [b"", b"Content-Length: 29\r\n"])
def test_chunks_are_read_and_the_connection_ends_after_them(live, chunks, status, length):
    """Also beside a length, which is not believed (RFC 9112, section 6.1)."""
    head = TOKEN + live.basic + b"Transfer-Encoding: chunked\r\n" + length
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" if status == 200 else b""
    assert live.ask(head + b"\r\n" + chunks + smuggled)[::2] == (status, True)


def test_a_body_that_is_cut_off_is_400(live):
    with live.connect(TOKEN + live.basic + b"Content-Length: 40\r\n\r\n" + FORM) as connection:
        connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.status == 400


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 400), (LIMIT + 1, 413), (10**9, 413)])
def test_the_largest_body(live, size, status):
    head = TOKEN + live.basic + b"Content-Length: %d\r\n\r\n" % size
    answer = live.ask(head + b"x" * min(size, 2 * LIMIT))
    assert answer[0] == status
    if status == 413:
        assert json.loads(answer[1]) == {"message": f"The body exceeds {LIMIT} octets."}


def test_no_body_is_awaited_of_who_has_no_account(live):
    status, body, _ = live.ask(TOKEN + b"Content-Length: 10\r\n\r\n")
    assert (status, json.loads(body)) == (400, {"error": "invalid_client"})
    assert live.ask(REGISTER + b"Content-Length: 9\r\n\r\n")[0] == 403


def test_more_unfinished_bodies_than_threads_stop_nothing(live):
    with ExitStack() as stack:
        for _ in range(300):
            head = TOKEN + live.basic + b"Content-Length: 29\r\n\r\n"
            stack.enter_context(live.connect(head))
        unfinished = live.connect(TOKEN + live.basic + b"Content-Length: 29\r\n\r\n")
        stack.enter_context(unfinished)
        assert live.ask(GET + b"\r\n")[0] == 200
        status, body, _ = live.ask(TOKEN + live.basic + b"Content-Length: 29\r\n\r\n" + FORM)
        assert (status, list(json.loads(body))) == (503, ["message"])
    request = TOKEN + live.basic + b"Content-Length: 29\r\n\r\n" + FORM
    assert any(live.ask(request)[0] == 200 for _ in range(50))


def test_no_answer_quotes_a_request(live, live_service):
    for name in (
        b"Authorization: Bearer \rhushhush",
        b" Authorization: Bearer hushhush",
        b"a\0hushhush:",
    ):
        status, body, _ = live.ask(GET + name + b"\r\n\r\n")
        assert (status, b"hushhush" in body) == (400, False)
    assert not re.search("hushhush|Traceback", live_service.said)
