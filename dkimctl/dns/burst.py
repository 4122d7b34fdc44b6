"""Many questions to one server at once, over UDP only."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Container, Iterable
from typing import NamedTuple

from dkimctl.dns.messages import (
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    random_id,
)
from dkimctl.dns.query_log import QueryLog

_MAX_TOTAL = 30.0  # seconds
_MAX_DATAGRAM = 1 << 16  # bytes


class BurstOptions(NamedTuple):
    """How to send a burst. `silence` is in seconds: the longest wait for the next answer.

    `refusals`: the RCODEs after which to ask again without EDNS.
    """

    in_flight: int
    recursion: bool
    edns: bool
    refusals: Container[int]
    silence: float


class BurstResult:
    """The answers that came, and the numbers of answers of no use."""

    def __init__(self) -> None:
        self.answers: dict[Question, Answer] = {}
        self.truncated = 0
        self.refused = 0


async def burst(
    address: str, port: int, questions: Iterable[Question], options: BurstOptions
) -> BurstResult:
    """What comes at once.

    Questions whose answer is lost, truncated or a refusal of EDNS are left out, for the caller to
    ask again one by one. Asking each question with a timeout of its own takes five times as long.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    result = BurstResult()
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.connect((address, port))
            one = _Burst(channel, questions, options, result, QueryLog(address, port))
            try:
                async with asyncio.timeout(_MAX_TOTAL):
                    await one.run()
            except OSError as error:
                one.log_unanswered(error)
    except OSError:  # no IPv6, too many open files
        pass
    return result


class _Burst:
    def __init__(
        self,
        channel: socket.socket,
        questions: Iterable[Question],
        options: BurstOptions,
        result: BurstResult,
        log: QueryLog,
    ) -> None:
        self._result = result
        self._channel = channel
        self._unsent = iter(questions)
        self._options = options
        self._waiting: dict[int, Question] = {}
        self._log = log
        self._sent: dict[int, float] | None = {} if log.is_on else None  # when, by message ID

    async def run(self) -> None:
        """Raises OSError, such as TimeoutError if no more answers come."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.silence
        while self._send():
            async with asyncio.timeout_at(deadline):
                data = await loop.sock_recv(self._channel, _MAX_DATAGRAM)
            # Other datagrams must not extend the wait.
            if self._receive(data):
                deadline = loop.time() + self._options.silence
            await asyncio.sleep(0)  # let other servers' bursts run

    def log_unanswered(self, error: OSError) -> None:
        """Log the questions that the error leaves without an answer."""
        for message_id, started in (self._sent or {}).items():
            self._log.failed("UDP", self._waiting[message_id], started, error)

    def _send(self) -> bool:
        """Send what may be in flight; returns whether there are answers to wait for."""
        while len(self._waiting) < self._options.in_flight:
            question = next(self._unsent, None)
            if question is None:
                break
            message_id = random_id()
            while message_id in self._waiting:
                message_id = random_id()
            try:
                self._channel.send(self._encoded(message_id, question))
            except BlockingIOError:
                break
            self._waiting[message_id] = question
            if self._sent is not None:
                self._sent[message_id] = time.monotonic()
        return bool(self._waiting)

    def _encoded(self, message_id: int, question: Question) -> bytes:
        recursion, edns = self._options.recursion, self._options.edns
        return encode(message_id, question, recursion=recursion, edns=edns)

    def _receive(self, data: bytes) -> bool:
        """Read this datagram and others that have arrived; returns whether any was an answer."""
        waiting = len(self._waiting)
        try:
            for _ in range(self._options.in_flight):
                self._take(data)
                data = self._channel.recv(_MAX_DATAGRAM)
            self._take(data)
        except BlockingIOError:
            pass
        return len(self._waiting) < waiting

    def _take(self, data: bytes) -> None:
        message_id = int.from_bytes(data[:2])
        question = self._waiting.get(message_id)
        if question is None:
            return
        try:
            answer = decode(data, question)
        except TruncatedAnswer:
            self._done(message_id, question, None)
            self._result.truncated += 1
            return
        if answer is None:  # forged or broken; the real answer may still come
            return
        self._done(message_id, question, answer)
        if answer.rcode in self._options.refusals:
            self._result.refused += 1
        else:
            self._result.answers[question] = answer

    def _done(self, message_id: int, question: Question, answer: Answer | None) -> None:
        """The question is answered; None: the answer is truncated."""
        del self._waiting[message_id]
        if self._sent is not None:
            self._log.answered("UDP", question, answer, self._sent.pop(message_id))
