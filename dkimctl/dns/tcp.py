"""Many questions over few TCP connections, answered in any order (RFC 7766 section 6.2.1.1)."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from dkimctl.dns.messages import (
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    random_id,
)

_MAX_TRIES = 3  # of a question, each on another connection
_MAX_IDLE = 0.5  # seconds; then a connection is closed (RFC 7766 section 6.2.3)
_MAX_READ = 1 << 16  # bytes at a time


class UnreadableAnswer(Exception):
    """The answer to a question is truncated, or cannot be parsed."""


class TcpClient:
    """Asks one server. `timeout` is in seconds, for connecting and one answer together.

    All questions share a connection. If the server closes it or stops before it has answered all,
    later connections get only as many questions as that one answered.
    """

    def __init__(self, address: str, port: int, *, recursion: bool, timeout: float) -> None:
        self._address = address
        self._port = port
        self._recursion = recursion
        self._timeout = timeout
        self._capacity = sys.maxsize  # questions that a connection answers
        self._latest: _Connection | None = None

    async def ask(self, question: Question, *, edns: bool) -> Answer:
        """Its answer. Raises OSError, such as TimeoutError; EOFError; UnreadableAnswer."""
        for tries_left in reversed(range(_MAX_TRIES)):
            connection = self._connection()
            try:
                async with asyncio.timeout(self._timeout):
                    return await connection.ask(question, recursion=self._recursion, edns=edns)
            except (OSError, EOFError):
                if not (tries_left and connection.is_overtaxed):
                    raise
                self._capacity = min(self._capacity, max(connection.answered, 1))
        raise AssertionError("the last try returns or raises")

    def _connection(self) -> _Connection:
        """One that takes another question."""
        latest = self._latest
        if latest is not None and latest.asked >= self._capacity:
            latest.retire()
        if latest is None or not latest.is_usable:
            self._latest = latest = _Connection(self._address, self._port)
        return latest


class _Connection:
    """Connects and reads in a task of its own, until it is retired or idle."""

    def __init__(self, address: str, port: int) -> None:
        self.asked = self.answered = 0
        self._is_retired = False
        self._waiting: dict[int, tuple[Question, asyncio.Future[Answer]]] = {}  # by message ID
        self._received = bytearray()
        self._unsent = bytearray()  # until it is connected
        self._writer: asyncio.StreamWriter | None = None
        self._last_used = 0.0
        self._task = asyncio.create_task(self._run(address, port))

    @property
    def is_usable(self) -> bool:
        """Whether it takes questions."""
        # Writing to a connection that is broken already would log a warning.
        return not (self._is_retired or (self._writer is not None and self._writer.is_closing()))

    @property
    def is_overtaxed(self) -> bool:
        """Whether it failed with several questions, so that it may have been too many."""
        return self._writer is not None and self.asked > 1

    async def ask(self, question: Question, *, recursion: bool, edns: bool) -> Answer:
        """Its answer. Raises OSError, EOFError, UnreadableAnswer."""
        message_id = random_id()
        while message_id in self._waiting:
            message_id = random_id()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[message_id] = question, answer
        self.asked += 1
        self._send(encode(message_id, question, recursion=recursion, edns=edns))
        try:
            return await answer
        except asyncio.CancelledError:  # timeout
            self._is_retired = True
            raise
        finally:
            del self._waiting[message_id]
            self._last_used = asyncio.get_running_loop().time()
            self._close_if_done()

    def retire(self) -> None:
        """Take no more questions, and close when no answer is missing."""
        self._is_retired = True
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_retired and not self._waiting:
            self._task.cancel()

    def _send(self, message: bytes) -> None:
        data = len(message).to_bytes(2) + message
        if self._writer is None:
            self._unsent += data
        else:
            self._writer.write(data)

    async def _run(self, address: str, port: int) -> None:
        failure: Exception = EOFError("the connection was closed")
        try:
            reader, self._writer = await asyncio.open_connection(address, port)
            self._writer.write(self._unsent)
            await self._read(reader)
        except (OSError, EOFError) as error:
            failure = error
        finally:
            self._is_retired = True
            if self._writer is not None:
                self._writer.transport.abort()  # does not wait for a server that reads nothing
            for _, answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(failure)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Raises OSError; EOFError at the end."""
        loop = asyncio.get_running_loop()
        while self._waiting or loop.time() < self._last_used + _MAX_IDLE:
            idle = asyncio.timeout(_MAX_IDLE)
            try:
                async with idle:
                    data = await reader.read(_MAX_READ)
            except TimeoutError:
                if not idle.expired():  # it is the connection's own
                    raise
                continue
            if not data:
                raise EOFError("the connection was closed")
            self._received += data
            self._take_messages()

    def _take_messages(self) -> None:
        """Read the messages that are complete, each after its length (RFC 1035 section 4.2.2)."""
        start = 0
        while len(self._received) >= start + 2:
            end = start + 2 + int.from_bytes(self._received[start : start + 2])
            if end > len(self._received):
                break
            self._take(bytes(self._received[start + 2 : end]))
            start = end
        del self._received[:start]

    def _take(self, wire: bytes) -> None:
        question, future = self._waiting.get(int.from_bytes(wire[:2]), (None, None))
        if question is None or future is None or future.done() or len(wire) < 2:
            return
        with contextlib.suppress(TruncatedAnswer):
            answer = decode(wire, question)
            if answer is not None:
                self.answered += 1
                future.set_result(answer)
                return
        future.set_exception(UnreadableAnswer("it cannot be read"))
