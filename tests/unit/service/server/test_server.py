"""The server closes trickling connections, and keeps idle ones."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import NoReturn
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from dkimctl.service.server.server import MAX_BODY
from running import running

LIMIT = 1.0  # seconds to receive a request, and to send its answer
SLACK = 3.0  # the server checks once a second
SERVE = f"""
import sys, tempfile
from dkimctl.service.server.listening import Listening
from dkimctl.service.server.server import Server

tempfile.tempdir = "/nowhere"  # nothing may be written to disk

def app(environ, start_response):
    size = int(environ["QUERY_STRING"] or 2)
    start_response("200 OK", [("Content-Length", str(size))])
    return [bytes(size)]

listening = Listening(sys.argv[1], 0)
server = Server(app, listening.sockets, 2, time_limit={LIMIT})
print(listening.local_url, flush=True)
server.run()
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def _served(host: str) -> Iterator[str]:
    """The address that a server announces; "" if it cannot listen on this host."""
    words = [sys.executable, "-c", SERVE, host]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with _served("127.0.0.1") as url:
        yield urlsplit(url).port or 0


@pytest.fixture
def connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connected:
        yield connected


def _is_answered(connection: socket.socket, request: bytes = REQUEST) -> bool:
    connection.sendall(request)
    answer = b""
    while not answer.endswith(b"\r\n\r\n\0\0"):
        piece = connection.recv(4096)
        if not piece:
            return False
        answer += piece
    return answer.startswith(b"HTTP/1.1 200 ")


def _seconds_to_the_end(connection: socket.socket) -> float:
    """How long the server accepts one byte after the other."""
    started = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() < started + 10:
        try:
            connection.sendall(b"x")
            if not connection.recv(4096):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - started


@pytest.mark.slow
@pytest.mark.parametrize(
    "beginning",
    [b"GE", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n",
     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"],
)  # fmt: skip
def test_a_trickling_request_is_cut_off(connection: socket.socket, beginning: bytes) -> None:
    connection.sendall(beginning)
    assert LIMIT <= _seconds_to_the_end(connection) < LIMIT + SLACK


@pytest.mark.slow
def test_each_request_has_its_own_time_limit(connection: socket.socket) -> None:
    for _ in range(3):
        assert _is_answered(connection)
        time.sleep(LIMIT * 0.8)


@pytest.mark.slow
def test_a_connection_may_be_idle_between_requests(connection: socket.socket) -> None:
    assert _is_answered(connection)
    time.sleep(LIMIT + SLACK)
    assert _is_answered(connection)


@pytest.mark.slow
def test_an_answer_that_is_not_read_is_cut_off(connection: socket.socket) -> None:
    size = 100_000_000
    connection.sendall(REQUEST.replace(b"/ ", b"/?%d " % size))
    time.sleep(LIMIT + SLACK)
    taken = 0
    while True:
        try:
            piece = connection.recv(1 << 20)
        except ConnectionError:
            break
        if not piece:
            break
        taken += len(piece)
    assert taken < size


def test_many_trickling_connections_do_not_block_others(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(150)]
    try:
        for client in slow:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            assert _is_answered(connection)
    finally:
        for client in slow:
            client.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [(b"GET / HTTP/1.1\r\nX: " + b"x" * 16_384 + b"\r\n\r\n", 431),
     (b"GET / HTTP/1.1\r\nX: \xff\"\0\r\n\r\n", 400),
     (b"GET / HTTP/1.1\r\nX: a\nb\r\n\r\n", 400),
     (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
     (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
     (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
     (b"GET /?x HTTP/1.1\r\n\r\n", 500)],
)  # fmt: skip
def test_requests_that_do_not_reach_the_application_are_answered_in_json(
    connection: socket.socket, request_: bytes, status: int
) -> None:
    connection.sendall(request_)
    answer = HTTPResponse(connection)
    answer.begin()
    assert (answer.status, answer.getheader("Content-Type")) == (status, "application/json")
    assert answer.getheader("Connection") == "close"
    assert json.loads(answer.read())["message"].startswith(answer.reason + ": ")
    with suppress(ConnectionError):  # if more was sent than was read
        assert connection.recv(1) == b""


def test_requests_that_do_not_reach_the_application_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def app(_environ: object, _start_response: object) -> NoReturn:
        raise AssertionError("this is not reached")

    with running(app, threads=1) as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nAuthorization SECRET\r\n\r\n")
        assert client.recv(100)
    (record,) = caplog.records
    assert record.message == "request refused"
    fields = {"status": 400, "address": "127.0.0.1", "reason": "the head is malformed"}
    assert vars(record)["fields"] == fields


@pytest.mark.parametrize(
    "worst",
    [b"GET a://" + b"1" * 15_000 + b" x\r\n\r\n",
     b"GET / HTTP/1.1\r\na:" + b" " * 15_000 + b"\x01\r\n\r\n",
     b"GET / HTTP/1.1\r\na: b" + b"\r\n " * 5_000 + b"\r\n\r\n"],
)  # fmt: skip
def test_the_worst_requests_do_not_block_others(port: int, worst: bytes) -> None:
    attackers = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(10)]
    try:
        for attacker in attackers:
            attacker.sendall(worst)
        started = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            assert _is_answered(connection)
        assert time.monotonic() - started < 5
    finally:
        for attacker in attackers:
            attacker.close()


def test_a_request_without_a_body_that_expects_100_continue_is_answered(
    connection: socket.socket,
) -> None:
    expecting = REQUEST.replace(b"Host", b"Expect: 100-continue\r\nHost")
    assert _is_answered(connection, expecting)
    assert _is_answered(connection)


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_largest_body_is_kept_in_memory(port: int, is_chunked: bool) -> None:
    size = MAX_BODY - 20_000  # without the framing of chunks
    body = (b"x" * 4096 for _ in range(size // 4096)) if is_chunked else b"x" * size
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("POST", "/", body, encode_chunked=is_chunked)
        assert connection.getresponse().status == 200


@pytest.mark.parametrize("host", ["localhost", "*", "::1", "[::1]", "::"])
def test_the_announced_address_can_be_connected_to(host: str) -> None:
    with _served(host) as url:
        if not url:
            pytest.skip(f"nothing can listen on {host} here")
        address = urlsplit(url)
        socket.create_connection((address.hostname, address.port or 0), timeout=5).close()


def test_answers_are_whole_while_the_next_request_asks_whether_to_go_on() -> None:
    """The loop sends the rest of an answer, and another thread "100 Continue" behind it."""
    body = b"".join(b"%07d\n" % number for number in range(60_000))
    expected = body + b"HTTP/1.1 100 Continue\r\n\r\n"
    requests = REQUEST + REQUEST.replace(b"GET", b"POST").replace(
        b"\r\n\r\n", b"\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    )

    def app(_environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    def is_whole(port: int) -> bool:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            client.settimeout(10)
            client.connect(("127.0.0.1", port))
            client.sendall(requests)
            received = b""
            while not received.endswith(b"Continue\r\n\r\n"):
                if not (octets := client.recv(65_536)):
                    break
                received += octets
        return received.partition(b"\r\n\r\n")[2] == expected

    with running(app, threads=8) as port, ThreadPoolExecutor(4) as clients:
        assert all(clients.map(is_whole, [port] * 400))
