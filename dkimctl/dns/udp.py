"""One question over UDP, sent again if no answer comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

from dkimctl.dns.messages import (
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    has_edns,
    random_id,
)


class Reply(NamedTuple):
    """`answer` is None if it was truncated. `to_edns`: it answers a question with EDNS."""

    answer: Answer | None
    to_edns: bool


async def exchange(
    address: str, port: int, question: Question, *, recursion: bool, edns: bool,
    waits: Iterable[float],
) -> Reply:  # fmt: skip
    """The first reply to any of the tries, each followed by a wait, in seconds.

    The last try is without EDNS, which some servers and firewalls drop (RFC 6891 section 6.2.2).
    Raises OSError, such as TimeoutError.
    """
    *first, last = waits
    tries = [*((seconds, edns) for seconds in first), (last, edns and not first)]
    message_id = random_id()  # one for all tries, so that a late reply to the first one counts
    async with _listen(address, port, message_id, question) as (transport, received):
        for seconds, with_edns in tries:
            transport.sendto(encode(message_id, question, recursion=recursion, edns=with_edns))
            await asyncio.wait((received,), timeout=seconds)
            if received.done():
                answer, reply_has_edns = received.result()
                return Reply(answer, edns and (with_edns or reply_has_edns))
    raise TimeoutError


_Received = asyncio.Future[tuple[Answer | None, bool]]  # the answer; whether it has EDNS


@contextlib.asynccontextmanager
async def _listen(
    address: str, port: int, message_id: int, question: Question
) -> AsyncIterator[tuple[asyncio.DatagramTransport, _Received]]:
    """A new socket for each question, so that a forger must guess its port (RFC 5452)."""
    loop = asyncio.get_running_loop()
    received: _Received = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _Listener(message_id, question, received), remote_addr=(address, port)
    )
    try:
        yield transport, received
    finally:
        transport.close()
        received.cancel()


class _Listener(asyncio.DatagramProtocol):
    """A connected socket for one question, which drops datagrams from other addresses."""

    def __init__(self, message_id: int, question: Question, received: _Received) -> None:
        self._message_id = message_id
        self._question = question
        self._received = received

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if int.from_bytes(data[:2]) != self._message_id or self._received.done():
            return
        try:
            answer = decode(data, self._question)
        except TruncatedAnswer:
            self._received.set_result((None, has_edns(data)))
        else:
            if answer is not None:  # else forged or broken; the real answer may still come
                self._received.set_result((answer, has_edns(data)))

    def error_received(self, exc: Exception) -> None:
        if not self._received.done():
            self._received.set_exception(exc)
