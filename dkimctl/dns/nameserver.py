"""One DNS server, asked many questions in parallel: over UDP, then TCP (RFC 7766)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dkimctl.dns.behaviour import MAX_FAILURES, ServerBehaviour
from dkimctl.dns.burst import BurstOptions, burst
from dkimctl.dns.messages import Answer, Question
from dkimctl.dns.query_log import QueryLog
from dkimctl.dns.tcp import TcpClient, UnreadableAnswer
from dkimctl.dns.udp import Reply, exchange

_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL))
_ONLY_TCP = "it answers over TCP, but not over UDP, which resolvers need"


class Timeouts(NamedTuple):
    """Waits for answers, in seconds: over UDP after each try, over TCP, and in a burst."""

    udp: tuple[float, ...] = (1.5, 1.5, 2.0)
    tcp: float = 5.0
    burst: float = 1.5


_TIMEOUTS = Timeouts()


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
    `needs_udp`: a server that answers only over TCP is not believed; resolvers would not be able to
    ask it.
    """

    def __init__(
        self,
        address: str,
        port: int = 53,
        *,
        max_in_flight: int = 1,
        recursion: bool = False,
        needs_udp: bool = True,
        timeouts: Timeouts = _TIMEOUTS,
    ) -> None:
        self.address = address
        self.port = port
        self._recursion = recursion
        self._max_in_flight = max_in_flight
        self._timeouts = timeouts
        self._slots = asyncio.Semaphore(max_in_flight)
        self._tcp = TcpClient(address, port, recursion=recursion, timeout=timeouts.tcp)
        self._log = QueryLog(address, port)
        self._behaviour = ServerBehaviour(needs_udp=needs_udp)
        self._prefetched: dict[Question, Answer] = {}
        self._failures = 0  # in a row

    async def ask(self, question: Question) -> Answer:
        """Its answer, of any RCODE. Raises NoAnswer."""
        answer = self._prefetched.pop(question, None)
        if answer is not None:
            return answer
        async with self._slots:
            if self._failures >= MAX_FAILURES:
                raise NoAnswer(self._why_given_up())
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
        One that limits its answers over UDP gets none: `ask` uses TCP.
        """
        self._prefetched = {}
        behaviour = self._behaviour
        if behaviour.limits_udp:
            return
        options = BurstOptions(
            self._max_in_flight, self._recursion, behaviour.edns, behaviour.edns_refusals,
            self._timeouts.burst,
        )  # fmt: skip
        result = await burst(self.address, self.port, questions, options)
        behaviour.note_burst(result, len(questions))
        self._prefetched = result.answers
        if result.answers:
            self._failures = 0

    def reset_failures(self) -> None:
        """Try it again, although it has not answered."""
        self._failures = 0

    def _why_given_up(self) -> str:
        if self._behaviour.answers_only_tcp:
            return _ONLY_TCP
        return f"it has not answered {self._failures} questions in a row"

    async def _ask(self, question: Question) -> Answer:
        edns, refusals = self._behaviour.edns, self._behaviour.edns_refusals
        answer = await self._over_udp_or_tcp(question, edns=edns)
        if answer.rcode not in refusals:
            return answer
        plain = await self._over_udp_or_tcp(question, edns=False)
        self._behaviour.note_refusal(answer, plain)
        # With EDNS, a refusal may say more (RFC 8914).
        return answer if answer.rcode == plain.rcode else plain

    async def _over_udp_or_tcp(self, question: Question, *, edns: bool) -> Answer:
        if self._behaviour.limits_udp:
            with contextlib.suppress(NoAnswer):
                return await self._over_tcp(question, edns=edns)
        reply = await self._over_udp(question, edns=edns)
        if reply is not None and reply.answer is not None:
            return reply.answer
        try:
            # A truncated reply to the last try, which is without EDNS, shows that EDNS gets none.
            answer = await self._over_tcp(question, edns=reply.to_edns if reply else edns)
        except NoAnswer as error:
            if reply is None:
                raise
            raise NoAnswer(f"its answer over UDP is truncated; over TCP, {error}") from None
        if self._behaviour.lacks_udp:
            raise NoAnswer(_ONLY_TCP)
        return answer

    async def _over_udp(self, question: Question, *, edns: bool) -> Reply | None:
        """None if no reply comes. Raises NoAnswer."""
        try:
            with self._log.exchange("UDP", question) as log_answer:
                reply = await exchange(
                    self.address, self.port, question, recursion=self._recursion, edns=edns,
                    waits=self._timeouts.udp,
                )  # fmt: skip
                log_answer(reply.answer)
        except (TimeoutError, ConnectionError):
            return None
        except OSError as error:
            raise _unreachable(error) from None
        self._behaviour.note_reply(reply, edns=edns)
        return reply

    async def _over_tcp(self, question: Question, *, edns: bool) -> Answer:
        """Raises NoAnswer."""
        try:
            with self._log.exchange("TCP", question) as log_answer:
                answer = await self._tcp.ask(question, edns=edns)
                log_answer(answer)
        except UnreadableAnswer:
            raise NoAnswer("its answer cannot be read") from None
        except TimeoutError:
            self._behaviour.note_tcp(answered=False)
            raise NoAnswer("it does not answer") from None
        except (OSError, EOFError) as error:
            self._behaviour.note_tcp(answered=False)
            raise _unreachable(error) from None
        self._behaviour.note_tcp(answered=True)
        return answer


def _unreachable(error: Exception) -> NoAnswer:
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return NoRoute("there is no route to it")
    if isinstance(error, ConnectionRefusedError):
        return NoAnswer("nothing answers at that address and port")
    if isinstance(error, EOFError | ConnectionError):
        return NoAnswer("it closed the connection")
    return NoAnswer(f"it cannot be reached: {error}")
