"""One DNS server, question many questions in parallel: over UDP, then TCP (RFC 7766)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from dkimctl.resolver.burst import burst
from dkimctl.resolver.messages import (
    NO_EDNS,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
    random_id,
)

# In seconds.
_UDP_TIMEOUTS = (1.5, 2.5)  # of each try
_TCP_TIMEOUT = 3.0

_MAX_FAILURES = 8  # in a row; then the server, or UDP, is no longer tried
_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL))


class NoAnswer(Exception):
    """There is no useful answer, so nothing is known. The text says why."""


class NoRoute(NoAnswer):
    """This machine has no route to the address, such as IPv6 without an IPv6 network."""


class Responder(Protocol):
    """What is asked: a Server, an UnresolvedServer, or a RecursiveResolver."""

    async def ask(self, question: Question) -> Answer: ...

    async def prefetch(self, questions: Sequence[Question]) -> None: ...


class NameServer(NamedTuple):
    """A name server of one zone; zones may share the responder.

    `label` is shown to people; `hosts` are the names that the zone has for it.
    """

    label: str
    hosts: frozenset[str]
    responder: Responder


class UnresolvedServer:
    """A server whose address is not known: every question to it has no answer."""

    def __init__(self, reason: NoAnswer) -> None:
        self._reason = reason

    async def ask(self, question: Question) -> Answer:  # noqa: ARG002
        raise self._reason

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Does nothing."""


class Server:
    """A DNS server at an IP address.

    At most `max_in_flight` questions are in flight at a time. `recursion` sets the RD bit.
    """

    def __init__(
        self,
        address: str,
        port: int = 53,
        *,
        max_in_flight: int = 1,
        recursion: bool = False,
    ) -> None:
        self.address = address
        self.port = port
        self._recursion = recursion
        self._max_in_flight = max_in_flight
        self._slots = asyncio.Semaphore(max_in_flight)
        self._prefetched: dict[Question, Answer] = {}
        self._failures = 0  # in a row, over both UDP and TCP
        self._udp_failures = 0  # in a row, where TCP then answered

    async def ask(self, question: Question) -> Answer:
        """Its answer, of any RCODE. Raises NoAnswer."""
        answer = self._prefetched.pop(question, None)
        if answer is not None:
            return answer
        async with self._slots:
            if self._failures >= _MAX_FAILURES:
                raise NoAnswer(f"it has not answered {self._failures} questions in a row")
            try:
                answer = await self._ask(question)
            except NoRoute:  # not the server's fault
                raise
            except NoAnswer:
                self._failures += 1
                raise
            self._failures = 0
            return answer

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Ask many questions in one burst; `ask` then gives each answer that came, once.

        A server that is no longer tried gets the burst as well, and is tried again if it answers.
        """
        self._prefetched = {}
        if not self._udp_failing:
            self._prefetched = await burst(
                self.address, self.port, questions, in_flight=self._max_in_flight,
                recursion=self._recursion,
            )  # fmt: skip
        if self._prefetched:
            self._failures = 0

    def reset_failures(self) -> None:
        """Try it again, although it has not answered."""
        self._failures = self._udp_failures = 0

    async def _ask(self, question: Question) -> Answer:
        answer = await self._over_udp_or_tcp(question, edns=True)
        if answer.rcode in NO_EDNS:
            return await self._over_udp_or_tcp(question, edns=False)
        return answer

    async def _over_udp_or_tcp(self, question: Question, *, edns: bool) -> Answer:
        udp_failures = self._udp_failures
        try:
            if not self._udp_failing:
                return await self._over_udp(question, edns=edns)
        except TruncatedAnswer:
            udp_failures = 0
        except (TimeoutError, ConnectionError):
            udp_failures += 1
        except OSError as error:
            raise _unreachable(error) from None
        try:
            answer = await self._over_tcp(question, edns=edns)
        except TimeoutError:
            raise NoAnswer("it does not answer") from None
        except (OSError, EOFError) as error:
            raise _unreachable(error) from None
        self._udp_failures = udp_failures  # only now: without TCP the server itself is down
        return answer

    @property
    def _udp_failing(self) -> bool:
        """Whether UDP to the server does not work, while TCP does."""
        return self._udp_failures >= _MAX_FAILURES

    async def _over_udp(self, question: Question, *, edns: bool) -> Answer:
        async with self._udp_query() as query:
            for seconds in _UDP_TIMEOUTS[:-1]:
                with contextlib.suppress(TimeoutError):
                    return await query.ask(question, seconds, self._recursion, edns)
            answer = await query.ask(question, _UDP_TIMEOUTS[-1], self._recursion, edns)
        self._udp_failures = 0
        return answer

    async def _over_tcp(self, question: Question, *, edns: bool) -> Answer:
        message_id = random_id()
        message = encode(message_id, question, recursion=self._recursion, edns=edns)
        async with asyncio.timeout(_TCP_TIMEOUT), self._connection() as (reader, writer):
            writer.write(len(message).to_bytes(2) + message)
            while True:
                wire = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                if int.from_bytes(wire[:2]) == message_id:
                    return _decoded(wire, question)

    @contextlib.asynccontextmanager
    async def _connection(
        self,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(self.address, self.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    @contextlib.asynccontextmanager
    async def _udp_query(self) -> AsyncIterator[_UdpQuery]:
        """A new socket for each question, so that a forger must guess its port (RFC 5452)."""
        loop = asyncio.get_running_loop()
        transport, query = await loop.create_datagram_endpoint(
            _UdpQuery, remote_addr=(self.address, self.port)
        )
        try:
            yield query
        finally:
            transport.close()


class _UdpQuery(asyncio.DatagramProtocol):
    """A connected socket for one question, which drops datagrams from other addresses."""

    _transport: asyncio.DatagramTransport
    _message_id = -1
    _question: Question
    _answer: asyncio.Future[Answer]

    async def ask(self, question: Question, seconds: float, recursion: bool, edns: bool) -> Answer:
        """Raises TimeoutError, TruncatedAnswer, OSError."""
        self._message_id, self._question = random_id(), question
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.sendto(encode(self._message_id, question, recursion=recursion, edns=edns))
        async with asyncio.timeout(seconds):
            return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if int.from_bytes(data[:2]) != self._message_id or self._answer.done():
            return
        try:
            answer = decode(data, self._question)
        except TruncatedAnswer as error:
            self._answer.set_exception(error)
        else:
            if answer is not None:  # else forged or broken; the real answer may still come
                self._answer.set_result(answer)

    def error_received(self, exc: Exception) -> None:
        if self._message_id >= 0 and not self._answer.done():
            self._answer.set_exception(exc)


def _decoded(wire: bytes, question: Question) -> Answer:
    try:
        answer = decode(wire, question)
    except TruncatedAnswer:
        answer = None
    if answer is None:
        raise NoAnswer("its answer cannot be read")
    return answer


def _unreachable(error: Exception) -> NoAnswer:
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return NoRoute("there is no route to it")
    if isinstance(error, ConnectionRefusedError):
        return NoAnswer("nothing answers at that address and port")
    if isinstance(error, EOFError | ConnectionError):
        return NoAnswer("it closed the connection")
    return NoAnswer(f"it cannot be reached: {error}")
