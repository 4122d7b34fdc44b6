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
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).parents[1] / "support"))  # also without pytest

from processes import Cli, ServeProcess
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


def post(token: str, body: bytes) -> bytes:
    head = f"POST /domain/dkim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def half_body(token: str) -> bytes:
    """A request without its last octet."""
    return post(token, b" " * 120_000)[:-1]


def large_answer(token: str) -> bytes:
    """A request whose answer is about three times as long: it quotes names that are no domains."""
    entries = [{"sign_domain": "é" * 1280} for _ in range(49)]
    return post(token, json.dumps({"domains": entries}, ensure_ascii=False).encode())


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
        await asyncio.sleep(delay)
        while True:
            writer = None
            self.standing += 1
            try:
                async with asyncio.timeout(self._kind.lasts):
                    # With a limit of 1, answers that are not read stay in the system's buffers.
                    limit = 65536 if self._kind.reads else 1
                    reader, writer = await asyncio.open_connection(*self._address, limit=limit)
                    writer.write(self._kind.opening)
                    await (self._ask if self._kind.counts else self._sit)(reader, writer)
            except TimeoutError:  # its own
                pass
            except OSError:
                self.closed += 1
            finally:
                self.standing -= 1
                if writer:
                    writer.transport.abort()
            await asyncio.sleep(RETRY)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    if not await reader.read(65536):
                        raise ConnectionResetError
            except OSError:
                self.unanswered += 1
                raise
            self.answers += 1
            await asyncio.sleep(1)
            writer.write(self._kind.drip)

    async def _sit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                async with asyncio.timeout(1):
                    await writer.drain()
                    while not self._kind.reads:
                        await asyncio.sleep(1)
                    while await reader.read(65536):
                        pass
                    raise ConnectionResetError
            except TimeoutError:
                writer.write(self._kind.drip)


def peak_memory(pid: int) -> float:
    """That of the largest of a process and its children, in MiB."""
    memory = 0.0
    with contextlib.suppress(OSError, TypeError):  # it has ended
        kib = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        memory = max([int(kib) / 1024, *map(peak_memory, map(int, children))])
    return memory


def longest_wait(address: tuple[str, int], seconds: float) -> float:
    """Of TRIES newcomers who ask one thing each, spread over `seconds`; at most PATIENCE."""
    started, waits = time.monotonic(), []
    for number in range(TRIES):
        time.sleep(max(0.0, started + number * seconds / TRIES - time.monotonic()))
        began = time.monotonic()
        connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
        try:
            connection.request("GET", "/nothing")
            connection.getresponse().read()
            waits.append(time.monotonic() - began)
        except (OSError, http.client.HTTPException):
            waits.append(PATIENCE)
        finally:
            connection.close()
        if time.monotonic() > started + 3 * seconds:
            break  # none of them is answered
    return max(waits)


class Figures(NamedTuple):
    newcomer: float  # the longest wait, in seconds
    memory: float  # MiB
    standing: int
    closed: int
    answers: int
    unanswered: int


def attack(service: ServeProcess, name: str, count: int, seconds: float) -> Figures:
    """Have `count` connections of a kind stand at the service for `seconds`."""
    host, _, port = urlsplit(service.url).netloc.partition(":")
    token = new_tokens(service.cli.home / "service.db", 1)[0]
    crowd = Crowd((host, int(port)), KINDS[name](token), count)
    crowd.start()
    newcomer = longest_wait((host, int(port)), seconds)
    standing, memory = crowd.standing, peak_memory(service.pid)
    crowd.stop()
    return Figures(newcomer, memory, standing, crowd.closed, crowd.answers, crowd.unanswered)


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
            closing(ServeProcess(Cli(Path(home)), *words)) as service,
        ):
            figures = attack(service, name, count, options.seconds)
            logged = service.said.splitlines()
            said = [line for line in logged if re.search("ERROR|WARNING|Traceback|Error:", line)]
        texts = [f"{what} {round(number, 2)}" for what, number in figures._asdict().items()]
        print(f"{count} {name}: {', '.join(texts)}", flush=True)
        for line in said[:10]:
            print(f"  on stderr: {line}")


if __name__ == "__main__":
    main()
