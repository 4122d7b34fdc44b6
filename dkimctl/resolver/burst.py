"""Many questions to one server in one go, over UDP alone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from dkimctl.resolver.messages import (
    NEED_CARE,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    random_number,
)

# In seconds.
_SILENCE = 1.5  # without any answer, after which none is waited for
_WHOLE = 30.0  # for all of them
_LARGEST = 1 << 16  # bytes of a datagram


async def burst(
    address: str, port: int, questions: Iterable[Question], *, in_flight: int, recursion: bool
) -> dict[bytes, Answer]:
    """The answers that come at once, by the sections of their questions.

    What is lost, truncated or refused for its form is left out, to be asked again with care.
    To ask for each on its own, with a time limit of its own, takes five times as long.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    answers: dict[bytes, Answer] = {}
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.connect((address, port))
            async with asyncio.timeout(_WHOLE):
                await _Burst(channel, questions, in_flight, recursion, answers).run()
    except OSError:  # no such sockets, no more of them, nobody there, a time-out
        pass
    return answers


class _Burst:
    def __init__(
        self,
        channel: socket.socket,
        questions: Iterable[Question],
        in_flight: int,
        recursion: bool,
        answers: dict[bytes, Answer],
    ) -> None:
        self._answers = answers
        self._channel = channel
        self._unsent = iter(questions)
        self._in_flight = in_flight
        self._recursion = recursion
        self._waiting: dict[int, Question] = {}

    async def run(self) -> None:
        """Raises OSError, such as TimeoutError where nothing comes any more."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + _SILENCE
        while self._send():
            async with asyncio.timeout_at(patience):
                data = await loop.sock_recv(self._channel, _LARGEST)
            # Only what is an answer counts: nobody is to keep us waiting with anything else.
            if self._receive(data):
                patience = loop.time() + _SILENCE
            await asyncio.sleep(0)  # other servers have their turn

    def _send(self) -> bool:
        """Whether there is anything to wait for."""
        while len(self._waiting) < self._in_flight:
            asked = next(self._unsent, None)
            if asked is None:
                break
            number = random_number()
            while number in self._waiting:
                number = random_number()
            try:
                self._channel.send(encode(number, asked, recursion=self._recursion))
            except BlockingIOError:
                break
            self._waiting[number] = asked
        return bool(self._waiting)

    def _receive(self, data: bytes) -> bool:
        """Take this one, and whatever else has arrived; whether any was an answer."""
        waiting = len(self._waiting)
        try:
            for _ in range(self._in_flight):
                self._take(data)
                data = self._channel.recv(_LARGEST)
            self._take(data)
        except BlockingIOError:
            pass
        return len(self._waiting) < waiting

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
        if answer.rcode not in NEED_CARE:
            self._answers[asked.section] = answer
