"""Attack `dkimctl serve` with connections that give nothing and take room; print what it costs.

    python tests/bench/attack.py [--connections 1000] [--seconds 20] [--workers N] [KIND ...]

For each kind of attack a new service is started, and the connections stand for some seconds; those
that the service closes are opened again a second later. Meanwhile 20 newcomers ask one thing each.
Printed: how long they waited, and the peak memory of the largest process.
Needs Linux (/proc).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import math
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

TRIES = 20
PATIENCE = 30.0  # seconds that a newcomer, or a client that keeps its connection, waits
RETRY = 1.0  # seconds until a connection that was closed is opened again
REQUEST = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"


class Kind(NamedTuple):
    """What one connection does: it sends `opening`, then `drip` once a second.

    `reads`: it reads answers; otherwise they stay in the buffers of the system and the service,
    and after `lasts` seconds it begins again, as it does not notice that it was closed.
    `counts`: every drip is a request, which has to be answered within PATIENCE.
    """

    opening: bytes
    drip: bytes = b""
    reads: bool = True
    lasts: float = math.inf
    counts: bool = False


def half_body(token: str, size: int = 120_000) -> bytes:
    """A request without its last octet."""
    head = f"POST /domain/dkim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {size}\r\n\r\n".encode() + b" " * (size - 1)


def large_answer(token: str, size: int = 128_000) -> bytes:
    """A request whose answer is about three times as long: it quotes names that are no domains."""
    entries = [{"sign_domain": "é" * (size // 100)} for _ in range(49)]
    body = json.dumps({"domains": entries}, ensure_ascii=False).encode()
    head = f"POST /domain/dkim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


KINDS: Mapping[str, Callable[[str], Kind]] = {
    "silent": lambda _: Kind(b""),
    "idle": lambda _: Kind(REQUEST),
    "trickling": lambda _: Kind(b"GET /nothing HTTP/1.1\r\nX: ", b"x"),
    "half bodies": lambda token: Kind(half_body(token)),
    "pipelined": lambda _: Kind(REQUEST * 200, reads=False, lasts=5),
    "unread answers": lambda token: Kind(large_answer(token), reads=False, lasts=5),
    "keep-alive": lambda _: Kind(REQUEST, REQUEST, counts=True),
}


class _Attacker:
    """One connection; `at` is when it does the next thing."""

    def __init__(self, kind: Kind, at: float) -> None:
        self.kind = kind
        self.at = at
        self.socket: socket.socket | None = None
        self.pending = b""
        self.asked: float | None = None
        self.ending = math.inf


class Crowd(threading.Thread):
    """`count` connections of one kind, in one thread, by non-blocking sockets."""

    def __init__(self, address: tuple[str, int], kind: Kind, count: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        now = time.monotonic()
        # Spread over a second, as clients are that do something every second.
        self._attackers = [_Attacker(kind, now + number / count) for number in range(count)]
        self._selector = selectors.DefaultSelector()
        self._ended = threading.Event()
        self.closed = self.unanswered = self.answers = 0

    @property
    def standing(self) -> int:
        return sum(attacker.socket is not None for attacker in self._attackers)

    def run(self) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            for attacker in self._attackers:
                if attacker.at <= now:
                    self._act(attacker, now)
            for key, events in self._selector.select(0.01):
                self._exchange(key.data, events)

    def stop(self) -> None:
        self._ended.set()
        self.join()
        for attacker in self._attackers:
            if attacker.socket is not None:
                attacker.socket.close()

    def _act(self, attacker: _Attacker, now: float) -> None:
        attacker.at = now + RETRY
        if now > attacker.ending:
            self._drop(attacker)
        if attacker.socket is None:
            attacker.ending = now + attacker.kind.lasts
            attacker.socket = self._connected(attacker)
            attacker.pending = attacker.kind.opening
            attacker.asked = now if attacker.kind.counts else None
        elif attacker.asked is None:
            attacker.pending += attacker.kind.drip
            attacker.asked = now if attacker.kind.counts else None
        elif now > attacker.asked + PATIENCE:
            self.unanswered += 1
            self._drop(attacker)
            return
        self._watch(attacker)

    def _connected(self, attacker: _Attacker) -> socket.socket:
        connection = socket.socket()
        if not attacker.kind.reads:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        connection.connect_ex(self._address)
        self._selector.register(connection, selectors.EVENT_READ, attacker)
        return connection

    def _watch(self, attacker: _Attacker) -> None:
        """Wait for what the connection can do next; select() tells nothing about others."""
        connection = attacker.socket
        assert connection is not None
        events = selectors.EVENT_WRITE if attacker.pending else 0
        events |= selectors.EVENT_READ if attacker.kind.reads else 0
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        if events:
            self._selector.register(connection, events, attacker)

    def _exchange(self, attacker: _Attacker, events: int) -> None:
        assert attacker.socket is not None
        try:
            if events & selectors.EVENT_WRITE and attacker.pending:
                attacker.pending = attacker.pending[attacker.socket.send(attacker.pending) :]
            if events & selectors.EVENT_READ:
                if not attacker.socket.recv(65536):
                    raise ConnectionResetError
                self.answers += attacker.asked is not None
                attacker.asked = None
        except BlockingIOError:
            return
        except OSError:
            self.closed += 1
            self.unanswered += attacker.asked is not None
            self._drop(attacker)
            return
        self._watch(attacker)

    def _drop(self, attacker: _Attacker) -> None:
        assert attacker.socket is not None
        with contextlib.suppress(KeyError):
            self._selector.unregister(attacker.socket)
        attacker.socket.close()
        attacker.socket = attacker.asked = None


class Usage(threading.Thread):
    """Watches a process and its children: the peak memory of the largest, in MiB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.memory = 0.0

    def run(self) -> None:
        while not self._ended.wait(0.1):
            for pid in _family(self._pid):
                with contextlib.suppress(OSError, TypeError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    kib = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
                    self.memory = max(self.memory, kib / 1024)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


class Newcomers:
    """Ask one thing each; how long that took, in seconds, or PATIENCE if there was no answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.waits: list[float] = []

    def come(self, seconds: float) -> None:
        """TRIES newcomers, spread over `seconds`."""
        started = time.monotonic()
        for number in range(TRIES):
            time.sleep(max(0.0, started + number * seconds / TRIES - time.monotonic()))
            self.waits.append(self._wait())
            if time.monotonic() > started + 3 * seconds:
                break  # none of them is answered

    def _wait(self) -> float:
        started = time.monotonic()
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        try:
            connection.request("GET", "/nothing")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return PATIENCE
        finally:
            connection.close()
        return time.monotonic() - started


class Figures(NamedTuple):
    """`newcomer`: the longest wait in seconds; `memory` in MiB."""

    newcomer: float
    memory: float
    standing: int
    closed: int
    answers: int
    unanswered: int

    def __str__(self) -> str:
        return (
            f"newcomer {self.newcomer:6.2f} s, memory {self.memory:4.0f} MiB, "
            f"standing {self.standing:4}, closed {self.closed:6}, "
            f"answers {self.answers:6}, unanswered {self.unanswered}"
        )


def attack(pid: int, address: tuple[str, int], kind: Kind, count: int, seconds: float) -> Figures:
    """Have `count` connections of `kind` stand at the server for `seconds`."""
    crowd, usage, newcomers = Crowd(address, kind, count), Usage(pid), Newcomers(address)
    usage.start()
    crowd.start()
    newcomers.come(seconds)
    standing = crowd.standing
    crowd.stop()
    usage.stop()
    figures = (standing, crowd.closed, crowd.answers, crowd.unanswered)
    return Figures(max(newcomers.waits), usage.memory, *figures)


@contextlib.contextmanager
def serving(home: Path, *words: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """A service of its own: its process ID and address."""
    command = [sys.executable, "-m", "dkimctl", "serve", "--port", "0"]
    environment = os.environ | {"HOME": str(home)}
    data = ["--data", str(home / "service.db")]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([*command, *data, *words], stderr=log, env=environment)
    try:
        port = None
        while port is None and process.poll() is None:
            time.sleep(0.05)
            port = re.search(r"http://127\.0\.0\.1:(\d+)[\s\S]*log in", (home / "log").read_text())
        assert port is not None, (home / "log").read_text()
        yield process.pid, ("127.0.0.1", int(port[1]))
    finally:
        process.terminate()
        process.wait(60)


def issue_token(home: Path, address: tuple[str, int]) -> str:
    data = ["--data", str(home / "service.db"), "--output", str(home / "secret")]
    command = [sys.executable, "-m", "dkimctl", "service", "client", "create", "c1", *data]
    subprocess.run(command, check=True, capture_output=True)
    basic = base64.b64encode(b"c1:" + (home / "secret").read_bytes().strip()).decode()
    with contextlib.closing(http.client.HTTPConnection(*address)) as connection:
        connection.request(
            "POST",
            "/oauth2/token",
            "grant_type=client_credentials",
            {
                "Authorization": f"Basic {basic}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        return str(json.loads(connection.getresponse().read())["access_token"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[[], *KINDS])
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    words = ["--workers", str(options.workers)] if options.workers else []
    for name in options.kinds or KINDS:
        count = options.connections // 2 if name == "keep-alive" else options.connections
        with (
            tempfile.TemporaryDirectory() as home,
            serving(Path(home), *words) as (pid, address),
        ):
            kind = KINDS[name](issue_token(Path(home), address))
            figures = attack(pid, address, kind, count, options.seconds)
            logged = Path(home, "log").read_text().splitlines()
            said = [line for line in logged if re.search("ERROR|WARNING|Traceback|Error:", line)]
        print(f"{count} {name:15} {figures}", flush=True)
        for line in said[:10]:
            print(f"  on stderr: {line}")


if __name__ == "__main__":
    main()
