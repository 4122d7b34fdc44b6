"""Many questions to one server in one go, over UDP alone."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable

from dkimctl.resolver.messages import (
    FORMERR,
    NOTIMP,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
)

_SILENCE = 1.5  # seconds without any answer, after which none is waited for
_LARGEST = 1 << 16  # bytes of a datagram
_NEED_CARE = frozenset((FORMERR, NOTIMP))


async def burst(
    address: str, port: int, questions: Iterable[Question], *, in_flight: int, recursion: bool
) -> dict[bytes, Answer]:
    """The answers that come at once, by the sections of their questions.

    What is lost, truncated or refused for its form is left out, to be asked again with care.
    To ask for each on its own, with a time limit of its own, takes five times as long.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as channel:
        channel.setblocking(False)
        work = _Burst(channel, questions, in_flight, recursion)
        try:
            channel.connect((address, port))
            await work.run()
        except OSError:  # time-outs are such errors, too
            pass
        return work.answers


class _Burst:
    def __init__(
        self, channel: socket.socket, questions: Iterable[Question], in_flight: int, recursion: bool
    ) -> None:
        self.answers: dict[bytes, Answer] = {}
        self._channel = channel
        self._unsent = iter(questions)
        self._in_flight = in_flight
        self._recursion = recursion
        self._waiting: dict[int, Question] = {}

    async def run(self) -> None:
        """Raises OSError, such as TimeoutError where nothing comes any more."""
        loop = asyncio.get_running_loop()
        while self._send():
            async with asyncio.timeout(_SILENCE):
                data = await loop.sock_recv(self._channel, _LARGEST)
            self._receive(data)
            await asyncio.sleep(0)  # other servers have their turn

    def _send(self) -> bool:
        """Whether there is anything to wait for."""
        while len(self._waiting) < self._in_flight:
            asked = next(self._unsent, None)
            if asked is None:
                break
            number = int.from_bytes(os.urandom(2))
            if number in self._waiting:
                continue  # the rare question is left out
            try:
                self._channel.send(encode(number, asked, recursion=self._recursion))
            except BlockingIOError:
                break
            self._waiting[number] = asked
        return bool(self._waiting)

    def _receive(self, data: bytes) -> None:
        """Take this one, and whatever else has arrived."""
        try:
            for _ in range(self._in_flight):
                self._take(data)
                data = self._channel.recv(_LARGEST)
            self._take(data)
        except BlockingIOError:
            pass

    def _take(self, data: bytes) -> None:
        number = int.from_bytes(data[:2])
        asked = self._waiting.get(number)
        if asked is None:
            return
        try:
            answer = decode(data, asked)
        except TruncatedAnswer:
            del self._waiting[number]
            return
        if answer is None:  # the true one may still come
            return
        del self._waiting[number]
        if answer.rcode not in _NEED_CARE:
            self.answers[asked.section] = answer
