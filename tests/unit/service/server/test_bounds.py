"""When room is short, the connections of least use are closed; what is in progress is answered."""

from __future__ import annotations

import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest

from dkimctl.service.server.connections import State, largest, useless

FRESH = 2.0  # seconds in which what just began something is kept; see connections.py
ENOUGH = 20.0  # seconds for a machine that has much else to do
SERVE = """
import signal, sys, tempfile, time
from dkimctl.service.server.listening import Listening
from dkimctl.service.server.server import Server

tempfile.tempdir = "/nowhere"  # nothing may be written to disk

def app(environ, start_response):
    if environ["PATH_INFO"] == "/wait":
        time.sleep(3)
    if environ["PATH_INFO"] == "/fail":
        raise ValueError(environ["HTTP_AUTHORIZATION"])
    size = int(environ["QUERY_STRING"] or 2)
    start_response("200 OK", [("Content-Length", str(size))])
    return [bytes(size)]

if files := int(sys.argv[2]):
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
listening = Listening("127.0.0.1", 0)
server = Server(app, listening.sockets, 2, max_connections=int(sys.argv[1]))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: server.stop())
print(listening.addresses[0][1], flush=True)
server.run()
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
WAITING = REQUEST.replace(b"/ ", b"/wait ")
TRICKLE = b"GET / HTTP/1.1\r\nX: "


class Served:
    """A server in a process of its own, and connections to it."""

    def __init__(self, stack: ExitStack, log: Path, max_connections: int, files: int) -> None:
        words = [sys.executable, "-c", SERVE, str(max_connections), str(files)]
        self._stack = stack
        self._log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr)
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        assert self.process.stdout is not None
        stack.callback(self.process.stdout.close)
        self.port = int(self.process.stdout.readline())

    @property
    def logged(self) -> str:
        return self._log.read_text()

    @property
    def peak_memory(self) -> float:
        """In MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        assert found is not None
        return int(found[1]) / 1024

    def connect(self, data: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=ENOUGH)
        self._stack.enter_context(connection)
        connection.sendall(data)
        return connection

    def asked(self, request: bytes = REQUEST) -> socket.socket:
        """A connection whose request was answered."""
        connection = self.connect(request)
        assert answer_of(connection).status == 200
        return connection


def answer_of(connection: socket.socket) -> HTTPResponse:
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not closed it; nothing else may come."""
    if not select.select([connection], [], [], 0.5)[0]:
        return True
    with suppress(ConnectionError):
        assert connection.recv(1) == b""
    return False


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:

        def start(max_connections: int = 1000, files: int = 0) -> Served:
            return Served(stack, tmp_path / "log", max_connections, files)

        yield start


class Fake:
    """A connection in a list."""

    def __init__(self, state: State, since: float = 0.0, memory: int = 0) -> None:
        self.state = state
        self.since = since
        self.memory = memory

    def priority(self, now: float) -> tuple[bool, State, float]:
        return False, self.state, self.since


def test_the_order_of_use() -> None:
    connections = [
        Fake(state, since)
        for state in (State.TRANSFER, State.PROCESSING, State.SILENT, State.IDLE)
        for since in (2.0, 1.0)
    ]
    dropped = [(one.state, one.since) for one in useless(connections, 99)]  # type: ignore[arg-type]
    assert dropped == [
        (State.SILENT, 1.0), (State.SILENT, 2.0), (State.IDLE, 1.0), (State.IDLE, 2.0),
        (State.TRANSFER, 1.0), (State.TRANSFER, 2.0),
    ]  # fmt: skip


def test_the_largest_go_until_the_rest_fits() -> None:
    transfers = [Fake(State.TRANSFER, memory=size) for size in (10, 50, 40)]
    processing = Fake(State.PROCESSING, memory=100)
    dropped = largest([*transfers, processing], 150)  # type: ignore[list-item]
    assert [one.memory for one in dropped] == [50]
    assert not list(largest([*transfers, processing], 200))  # type: ignore[list-item]


def test_silent_connections_go_first_then_idle_ones_then_unfinished_requests(
    serve: Callable[..., Served],
) -> None:
    served = serve(max_connections=3)
    unfinished, idle, silent = served.connect(TRICKLE), served.asked(), served.connect()
    time.sleep(FRESH + 0.5)
    served.asked()
    assert [is_open(one) for one in (unfinished, idle, silent)] == [True, True, False]
    served.asked()
    assert [is_open(one) for one in (unfinished, idle)] == [True, False]
    served.asked()
    assert not is_open(unfinished)


@pytest.mark.parametrize("opening", [b"", TRICKLE, REQUEST])
def test_a_newcomer_is_answered_among_many_that_are_new(
    serve: Callable[..., Served], opening: bytes
) -> None:
    served = serve(max_connections=20)
    crowd = [served.connect(opening) for _ in range(60)]
    newcomer = served.connect()
    time.sleep(0.2)  # as from far away
    newcomer.sendall(REQUEST)
    assert answer_of(newcomer).status == 200
    assert len(crowd) == 60


def test_a_request_that_is_being_processed_is_answered(serve: Callable[..., Served]) -> None:
    served = serve(max_connections=4)
    waiting = [served.connect(WAITING) for _ in range(3)]
    time.sleep(FRESH + 0.2)
    newcomers = [served.connect(REQUEST) for _ in range(3)]  # they wait, and are not refused
    for connection in [*waiting, *newcomers]:
        assert answer_of(connection).status == 200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_system_that_allows_few_files(serve: Callable[..., Served]) -> None:
    served = serve(files=40)
    for _ in range(100):
        served.connect()
    served.asked()
    assert served.logged == ""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("kind", ["half bodies", "answers nobody reads", "answers that were read"])
def test_memory_is_limited(serve: Callable[..., Served], kind: str) -> None:
    served = serve()
    crowd = []
    for _ in range(100):
        if kind == "half bodies":
            crowd.append(served.connect())
            crowd[-1].setblocking(False)
            crowd[-1].send(b"POST / HTTP/1.1\r\nContent-Length: 1300000\r\n\r\n")
            _send_what_is_taken(crowd[-1], b"x" * 1_299_999)
        elif kind == "answers nobody reads":
            crowd.append(served.connect(REQUEST.replace(b"/ ", b"/?5000000 ")))
        else:
            served.asked(REQUEST.replace(b"/ ", b"/?5000000 "))
    served.asked()
    assert served.peak_memory < 250


def _send_what_is_taken(connection: socket.socket, data: bytes) -> None:
    connection.settimeout(0.5)
    with suppress(OSError):  # it was closed, or the server reads no more
        connection.sendall(data)


def test_urgent_data_closes_the_connection(serve: Callable[..., Served]) -> None:
    served = serve()
    connection = served.asked()
    connection.send(b"!", socket.MSG_OOB)
    assert not is_open(connection)


@pytest.mark.parametrize(
    "request_",
    [b"GET / HTTP/1.1\r\nAuthorization: Bearer\rsecret\r\n\r\n",
     b"GET / HTTP/1.1\r\nAuthorization: Bearer\nsecret\r\n\r\n",
     b"GET / HTTP/1.1\r\n Authorization: Bearer secret\r\n\r\n",
     b"GET / HTTP/1.1\r\nAuthorization: Bearer secret\0\r\n\r\n",
     b"GET /fail?secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n",
     b"GET /?secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"],
)  # fmt: skip
def test_no_error_quotes_a_request(serve: Callable[..., Served], request_: bytes) -> None:
    served = serve()
    connection = served.connect(request_)
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ", b"HTTP/1.1 500 "))
    assert b"secret" not in answer
    assert "secret" not in served.logged
    assert "Traceback" not in served.logged
    if b" 500 " in answer:
        assert served.logged.startswith("the HTTP server failed: ValueError at ")


def test_too_many_headers_are_refused(serve: Callable[..., Served]) -> None:
    served = serve()
    headers = b"".join(b"x%d: y\r\n" % number for number in range(101))
    connection = served.connect(b"GET / HTTP/1.1\r\n" + headers + b"\r\n")
    assert answer_of(connection).status == 400
    few = headers.replace(b"x100: y\r\n", b"")
    served.asked(b"GET / HTTP/1.1\r\n" + few + b"\r\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for others")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_after_the_requests_in_progress(
    serve: Callable[..., Served], number: signal.Signals
) -> None:
    served = serve()
    idle, waiting, partial = served.asked(), served.connect(WAITING), served.connect(WAITING[:30])
    time.sleep(0.5)
    served.process.send_signal(number)
    assert not is_open(idle)
    with pytest.raises(ConnectionRefusedError):
        served.connect()
    partial.sendall(WAITING[30:])
    for connection in (waiting, partial):
        answer = answer_of(connection)
        assert answer.status == 200
    assert answer.getheader("Connection") == "close"
    assert served.process.wait(ENOUGH) == 0
    assert served.logged == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for others")
def test_one_that_connected_just_before_the_stop_is_answered(serve: Callable[..., Served]) -> None:
    served = serve()
    new, _silent = served.connect(), served.connect()
    served.process.terminate()
    with suppress(ConnectionRefusedError):  # when it accepts no more
        while True:
            served.connect().close()
            time.sleep(0.02)
    new.sendall(REQUEST)
    answer = answer_of(new)
    assert (answer.status, answer.getheader("Connection")) == (200, "close")
    assert served.process.wait(ENOUGH) == 0  # before the limit of stopping
    assert served.logged == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for others")
def test_a_second_signal_stops_it_at_once(serve: Callable[..., Served]) -> None:
    served = serve()
    trickling = served.connect(TRICKLE)
    time.sleep(0.5)
    served.process.terminate()
    assert is_open(trickling)
    served.process.terminate()
    assert served.process.wait(ENOUGH) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for others")
def test_a_second_signal_does_not_wait_for_the_loop(serve: Callable[..., Served]) -> None:
    """All threads have requests, so the main one, which gets the signal, runs the loop."""

    def seconds_to_the_end() -> float:
        served = serve()
        waiting = [served.connect(WAITING) for _ in range(2)]
        time.sleep(0.8)
        served.process.terminate()
        time.sleep(0.5)  # the loop has begun to wait for another second
        before = time.monotonic()
        served.process.terminate()
        assert served.process.wait(ENOUGH) == 0
        assert not any(is_open(connection) for connection in waiting)
        return time.monotonic() - before

    assert min(seconds_to_the_end() for _ in range(3)) < 0.5
