"""One DNS server, asked many questions at the same time: over UDP, then TCP (RFC 7766)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Sequence

from dkimctl.resolver.burst import burst
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
_OVER_UDP = (1.5, 2.5)  # each try; what is lost is mostly one datagram
_OVER_TCP = 3.0
_ENOUGH = 8  # questions in a row without an answer, after which none is asked any more
_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL))


class NoAnswer(Exception):
    """A server did not answer usefully: nothing is known. The text says why."""


class NoRoute(NoAnswer):
    """This machine has no way to addresses of that kind."""


class UnresolvedServer:
    """Stands for a server that cannot be asked, since nobody tells where it is."""

    def __init__(self, host: str, reason: NoAnswer) -> None:
        self.label = self.host = host
        self._reason = reason

    async def ask(self, asked: Question) -> Answer:  # noqa: ARG002
        raise self._reason

    async def prepare(self, questions: Sequence[Question]) -> None:
        """Nothing can be prepared."""


class Server:
    """A DNS server at an IP address. `label` is what people call it, `host` its name.

    At most `max_in_flight` questions are on their way to it. With `recursion` it is asked to
    find out what it does not know itself.
    """

    def __init__(
        self,
        address: str,
        port: int = 53,
        *,
        host: str = "",
        label: str = "",
        max_in_flight: int = 1,
        recursion: bool = False,
    ) -> None:
        self.address = address
        self.port = port
        self.label = label or address
        self.host = host or self.label
        self._recursion = recursion
        self._max_in_flight = max_in_flight
        self._slots = asyncio.Semaphore(max_in_flight)
        self._answered: dict[bytes, Answer] = {}  # beforehand
        self._silences = 0  # in a row, over UDP and TCP
        self._losses = 0  # in a row, over UDP, of what TCP then brought

    async def ask(self, asked: Question) -> Answer:
        """What it answers, whatever that is. Raises NoAnswer where nothing comes."""
        answer = self._answered.pop(asked.section, None)
        if answer is not None:
            return answer
        async with self._slots:
            if self._silences >= _ENOUGH:
                raise NoAnswer(f"it has not answered {self._silences} questions in a row")
            try:
                answer = await self._ask(asked)
            except NoRoute:  # which says nothing of the server
                raise
            except NoAnswer:
                self._silences += 1
                raise
            self._silences = 0
            return answer

    async def prepare(self, questions: Sequence[Question]) -> None:
        """Ask many in one go; of those that are answered `ask` then gives the answer, once.

        One that has been silent is asked again so, and with care once it has answered.
        """
        self._answered = {}
        if not self._udp_failing:
            self._answered = await burst(
                self.address, self.port, questions, in_flight=self._max_in_flight,
                recursion=self._recursion,
            )  # fmt: skip
        if self._answered:
            self._silences = 0

    def reset_failures(self) -> None:
        """Ask it again, though it has been silent."""
        self._silences = self._losses = 0

    async def _ask(self, asked: Question) -> Answer:
        answer = await self._over_both(asked, edns=True)
        if answer.rcode in NEED_CARE:
            return await self._over_both(asked, edns=False)
        return answer

    async def _over_both(self, asked: Question, *, edns: bool) -> Answer:
        losses = self._losses
        try:
            if not self._udp_failing:
                return await self._over_udp(asked, edns=edns)
        except TruncatedAnswer:
            losses = 0
        except (TimeoutError, ConnectionError):
            losses += 1
        except OSError as error:
            raise _unreachable(error) from None
        try:
            answer = await self._over_tcp(asked, edns=edns)
        except TimeoutError:
            raise NoAnswer("it does not answer") from None
        except (OSError, EOFError) as error:
            raise _unreachable(error) from None
        self._losses = losses  # a server that is silent altogether is not deaf
        return answer

    @property
    def _udp_failing(self) -> bool:
        """Whether UDP is lost on it, or on the way to it."""
        return self._losses >= _ENOUGH

    async def _over_udp(self, asked: Question, *, edns: bool) -> Answer:
        async with self._datagrams() as datagrams:
            for seconds in _OVER_UDP[:-1]:
                with contextlib.suppress(TimeoutError):
                    return await datagrams.ask(asked, seconds, self._recursion, edns)
            answer = await datagrams.ask(asked, _OVER_UDP[-1], self._recursion, edns)
        self._losses = 0
        return answer

    async def _over_tcp(self, asked: Question, *, edns: bool) -> Answer:
        number = random_number()
        message = encode(number, asked, recursion=self._recursion, edns=edns)
        async with asyncio.timeout(_OVER_TCP), self._connection() as (reader, writer):
            writer.write(len(message).to_bytes(2) + message)
            while True:
                wire = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                if int.from_bytes(wire[:2]) == number:
                    return _decoded(wire, asked)

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
    async def _datagrams(self) -> AsyncIterator[_Datagrams]:
        """A socket of its own for each question: who would forge the answer has its port to guess.

        None is kept, since a machine has only so many.
        """
        loop = asyncio.get_running_loop()
        transport, datagrams = await loop.create_datagram_endpoint(
            _Datagrams, remote_addr=(self.address, self.port)
        )
        try:
            yield datagrams
        finally:
            transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    """A connected socket for one question: answers from elsewhere do not get in."""

    _transport: asyncio.DatagramTransport
    _number = -1
    _asked: Question
    _answer: asyncio.Future[Answer]

    async def ask(self, asked: Question, seconds: float, recursion: bool, edns: bool) -> Answer:
        """Raises TimeoutError, TruncatedAnswer, and OSError where it cannot be reached."""
        self._number, self._asked = random_number(), asked
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.sendto(encode(self._number, asked, recursion=recursion, edns=edns))
        async with asyncio.timeout(seconds):
            return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if int.from_bytes(data[:2]) != self._number or self._answer.done():
            return
        try:
            found = decode(data, self._asked)
        except TruncatedAnswer as error:
            self._answer.set_exception(error)
        else:
            if found is not None:  # otherwise the true one may still come
                self._answer.set_result(found)

    def error_received(self, exc: Exception) -> None:
        if self._number >= 0 and not self._answer.done():
            self._answer.set_exception(exc)


def _decoded(wire: bytes, asked: Question) -> Answer:
    try:
        answer = decode(wire, asked)
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
