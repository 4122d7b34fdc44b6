"""One DNS server, asked many questions at the same time: over UDP, then TCP (RFC 7766)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Sequence

from dkimctl.resolver.burst import burst
from dkimctl.resolver.messages import (
    FORMERR,
    NOTIMP,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
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
        self._silences = 0  # in a row
        self._opening: asyncio.Future[_Datagrams] | None = None

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
            except NoAnswer:
                self._silences += 1
                raise
            self._silences = 0
            return answer

    async def prepare(self, questions: Sequence[Question]) -> None:
        """Ask many in one go; of those that are answered `ask` then gives the answer, once."""
        if self._silences < _ENOUGH:
            self._answered = await burst(
                self.address, self.port, questions, in_flight=self._max_in_flight,
                recursion=self._recursion,
            )  # fmt: skip
            self._silences = 0 if self._answered else self._silences

    def forgive(self) -> None:
        """Ask it again, though it has been silent."""
        self._silences = 0

    async def close(self) -> None:
        if self._opening is not None:
            with contextlib.suppress(OSError):
                (await self._opening).close()

    async def _ask(self, asked: Question) -> Answer:
        answer = await self._over_both(asked, edns=True)
        if answer.rcode in (FORMERR, NOTIMP):  # older than RFC 6891
            return await self._over_both(asked, edns=False)
        return answer

    async def _over_both(self, asked: Question, *, edns: bool) -> Answer:
        try:
            return await self._over_udp(asked, edns=edns)
        except (TruncatedAnswer, TimeoutError, ConnectionError):
            pass
        except OSError as error:
            raise _unreachable(error) from None
        try:
            return await self._over_tcp(asked, edns=edns)
        except TimeoutError:
            raise NoAnswer("it does not answer") from None
        except (OSError, EOFError) as error:
            raise _unreachable(error) from None

    async def _over_udp(self, asked: Question, *, edns: bool) -> Answer:
        datagrams = await self._datagrams()
        for seconds in _OVER_UDP[:-1]:
            with contextlib.suppress(TimeoutError):
                return await datagrams.ask(asked, seconds, self._recursion, edns)
        return await datagrams.ask(asked, _OVER_UDP[-1], self._recursion, edns)

    async def _over_tcp(self, asked: Question, *, edns: bool) -> Answer:
        number = _random_number()
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

    async def _datagrams(self) -> _Datagrams:
        """The socket for all questions to this server, made when it is first asked."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(_open(self.address, self.port))
        return await asyncio.shield(self._opening)


class _Datagrams(asyncio.DatagramProtocol):
    """A connected socket: answers from elsewhere do not get in."""

    _transport: asyncio.DatagramTransport

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Question, asyncio.Future[Answer]]] = {}

    async def ask(self, asked: Question, seconds: float, recursion: bool, edns: bool) -> Answer:
        loop = asyncio.get_running_loop()
        number = _random_number()
        while number in self._waiting:
            number = _random_number()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting[number] = asked, answer
        timer = loop.call_later(seconds, _fail, answer, TimeoutError())
        try:
            self._transport.sendto(encode(number, asked, recursion=recursion, edns=edns))
            return await answer
        finally:
            timer.cancel()
            del self._waiting[number]

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        asked, answer = self._waiting.get(int.from_bytes(data[:2]), (None, None))
        if asked is None or answer is None or answer.done():
            return
        try:
            found = decode(data, asked)
        except TruncatedAnswer as error:
            answer.set_exception(error)
        else:
            if found is not None:  # otherwise the true one may still come
                answer.set_result(found)

    def error_received(self, exc: Exception) -> None:
        for _, answer in self._waiting.values():
            _fail(answer, exc)


async def _open(address: str, port: int) -> _Datagrams:
    loop = asyncio.get_running_loop()
    _, datagrams = await loop.create_datagram_endpoint(_Datagrams, remote_addr=(address, port))
    return datagrams


def _fail(answer: asyncio.Future[Answer], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


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


def _random_number() -> int:
    return int.from_bytes(os.urandom(2))
