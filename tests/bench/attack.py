"""Attack `dkimctl serve` with connections that give nothing and take room; print what it costs.

    python tests/bench/attack.py [--connections 1000] [--seconds 20] [--workers N] [KIND ...]

For each kind of attack a new service is started, and the connections stand for some seconds; those
that the service closes are opened again a second later. Meanwhile 20 newcomers ask one thing each.
Printed: how long they waited, and the peak memory of the largest process.
Needs Linux (/proc).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from service_crash import new_tokens

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


class Crowd(threading.Thread):
    """`count` connections of one kind."""

    def __init__(self, address: tuple[str, int], kind: Kind, count: int) -> None:
        super().__init__(daemon=True)
        self._address, self._kind, self._count = address, kind, count
        self._ended = threading.Event()
        self.standing = self.closed = self.unanswered = self.answers = 0

    def run(self) -> None:
        asyncio.run(self._attack())

    def stop(self) -> None:
        self._ended.set()
        self.join()

    async def _attack(self) -> None:
        # Spread over a second, as clients are that do something every second.
        tasks = [
            asyncio.create_task(self._stand(number / self._count)) for number in range(self._count)
        ]
        while not self._ended.is_set():
            await asyncio.sleep(0.05)
        for task in tasks:  # and asyncio.run() waits for them
            task.cancel()

    async def _stand(self, delay: float) -> None:
        loop, reads = asyncio.get_running_loop(), self._kind.reads
        await asyncio.sleep(delay)
        while True:
            with socket.socket() as connection:
                connection.setblocking(False)
                if not reads:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                self.standing += 1
                try:
                    async with asyncio.timeout(self._kind.lasts):
                        await loop.sock_connect(connection, self._address)
                        await (
                            self._ask(connection) if self._kind.counts else self._sit(connection)
                        )
                except TimeoutError:  # its own
                    pass
                except OSError:
                    self.closed += 1
                finally:
                    self.standing -= 1
            await asyncio.sleep(RETRY)

    async def _ask(self, connection: socket.socket) -> None:
        loop, data = asyncio.get_running_loop(), self._kind.opening
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    await loop.sock_sendall(connection, data)
                    if not await loop.sock_recv(connection, 65536):
                        raise ConnectionResetError
            except OSError:
                self.unanswered += 1
                raise
            self.answers += 1
            data = self._kind.drip
            await asyncio.sleep(1)

    async def _sit(self, connection: socket.socket) -> None:
        if not self._kind.reads:
            await self._drip(connection)
        dripping = asyncio.create_task(self._drip(connection))
        try:
            while await asyncio.get_running_loop().sock_recv(connection, 65536):
                pass
            raise ConnectionResetError
        finally:
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)

    async def _drip(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, self._kind.opening)
        while True:
            await asyncio.sleep(1)
            await loop.sock_sendall(connection, self._kind.drip)


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


def issue_token(home: Path, _address: tuple[str, int]) -> str:
    return new_tokens(home / "service.db", 1)[0]


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
