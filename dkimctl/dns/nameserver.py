"""One DNS server, asked many questions in parallel; and the resolvers of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import dns.exception
import dns.name
from dns.edns import EDEOption

from dkimctl.addresses import Address, parse_address
from dkimctl.dns import messages, transport
from dkimctl.dns.messages import USEFUL, Answer, Question, TruncatedAnswer, encode, log_query
from dkimctl.dns.transport import ConnectionLost, Pipeline, Streams, UnreadableAnswer
from dkimctl.errors import ServiceError, UsageError
from dkimctl.text import printable

_MAX_FAILURES = 8  # in a row; then something does not work
_MAX_ERROR = 200  # characters
_MAX_DATAGRAM = 1 << 16  # bytes
_MAX_BURST = 30.0  # seconds
_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL))
_ONLY_TCP = "it answers over TCP, but not over UDP, which resolvers need"

# Questions by message ID, and when they were asked (time.monotonic).
_Waiting: TypeAlias = dict[int, tuple[Question, float]]


class Timeouts(NamedTuple):
    """Waits for answers, in seconds: over UDP after each try, over TCP, and in a burst."""

    udp: tuple[float, ...] = (1.5, 1.5, 2.0)
    tcp: float = 5.0
    burst: float = 1.5


class NoAnswer(Exception):
    """No useful answer came, so nothing is known. The text says why."""


class NoRoute(NoAnswer):
    """This machine has no route to the address, such as IPv6 without an IPv6 network."""


class ErrorAnswer(NoAnswer):
    """The resolver answers with an error, such as SERVFAIL: it gets no answer of the servers."""


class NameServer(NamedTuple):
    """A name server of a zone, by the names (`hosts`) that the zone has for it."""

    label: str
    hosts: frozenset[str]
    responder: Server | RecursiveResolver | NoAnswer  # or why its address is not known
    is_regular: bool = True  # named by the zone and its delegation, so it should copy the zone


@dataclass(eq=False)
class Server:
    """A DNS server at an IP address, asked over UDP, then TCP (RFC 7766), as its answers advise."""

    address: str
    port: int = 53
    max_in_flight: int = 1  # questions at a time
    recursion: bool = False  # the RD bit
    needs_udp: bool = True  # if it answers only over TCP, it is not believed: resolvers fail
    timeouts: Timeouts = field(default_factory=Timeouts)
    _prefetched: dict[Question, Answer] = field(default_factory=dict)
    _cookie: bytes = field(default_factory=lambda: os.urandom(8))  # RFC 7873 section 4
    _failures: int = 0  # in a row
    _answers_udp: bool = False  # at least once; a truncated answer counts
    _answers_tcp: bool | None = None  # the last question; None: not yet asked
    _lost: int = 0  # answers over UDP, in a row, lost or truncated
    _edns: bool = True  # whether to use it
    _has_used_edns: bool = False
    _same_refusals: int = 0  # in a row, both with and without EDNS

    def __post_init__(self) -> None:
        self._address = Address(self.address, self.port)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, question: Question) -> Answer:
        """Its answer, of any RCODE. Raises NoAnswer."""
        answer = self._prefetched.pop(question, None)
        if answer is not None:
            return answer
        if self._loop is not (loop := asyncio.get_running_loop()):
            # A semaphore is for one event loop; there may be one for each mail, or round of checks.
            self._loop, self._slots = loop, asyncio.Semaphore(self.max_in_flight)
        async with self._slots:
            if self._failures >= _MAX_FAILURES:
                if self._answers_tcp and self._lacks_udp:
                    raise NoAnswer(_ONLY_TCP)
                raise NoAnswer(f"it has not answered {self._failures} questions in a row")
            try:
                answer = await self._ask(question)
            except NoAnswer as error:
                self._failures += not isinstance(error, NoRoute)  # which is not its fault
                raise
            self._failures = 0
            return answer

    def has(self, question: Question) -> bool:
        """Whether `ask` gives an answer that has come by now, so a task would only cost time."""
        return question in self._prefetched

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Ask many questions at once; `ask` then gives each answer that came, once.

        They are asked in a burst over UDP, and over TCP if the server limits its answers over UDP.
        A server that is left out by now gets the burst as well, and is tried again if it answers.
        """
        self._prefetched = {}
        refusals = self._refusals
        if not self._limits_udp:
            await self._ask_in_burst(questions)
        left = [question for question in questions if question not in self._prefetched]
        if left and self._limits_udp:
            pipeline = Pipeline(
                self._connect, self._address, timeout=self.timeouts.tcp, recursion=self.recursion,
                edns=self._edns, in_flight=min(self.max_in_flight, transport.IN_FLIGHT),
            )  # fmt: skip
            # `ask` tells why there is no answer.
            with contextlib.suppress(ConnectionLost, UnreadableAnswer, OSError):
                await pipeline.ask(left)
            for question, answer in pipeline.answers.items():
                if answer.rcode not in refusals:
                    self._prefetched[question] = answer
        if self._prefetched:
            self._failures = 0

    async def _ask_in_burst(self, questions: Sequence[Question]) -> None:
        """`_prefetched` gets what comes over UDP, but for refusals of EDNS.

        Asking each question with a timeout of its own takes five times as long.
        """
        unsent, loop = iter(questions), asyncio.get_running_loop()
        waiting: _Waiting = {}
        replies: list[bool] = []  # whether each is whole
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)
                channel.connect(self._address)
                async with asyncio.timeout(_MAX_BURST):
                    deadline = loop.time() + self.timeouts.burst
                    while self._send(channel, unsent, waiting):
                        before = len(replies)
                        async with asyncio.timeout_at(deadline):
                            data = await loop.sock_recv(channel, _MAX_DATAGRAM)
                        replies += self._take(data, waiting)
                        with contextlib.suppress(BlockingIOError):
                            for _ in range(self.max_in_flight):  # others that have arrived
                                replies += self._take(channel.recv(_MAX_DATAGRAM), waiting)
                        # Datagrams that answer nothing must not extend the wait.
                        if len(replies) > before:
                            deadline = loop.time() + self.timeouts.burst
                        await asyncio.sleep(0)  # let other servers' bursts run
        except OSError as error:  # no IPv6, too many open files, or no more answers come
            for question, started in waiting.values():
                log_query(self._address, "UDP", question, started, error)
        if replies:
            self._answers_udp = True
            self._lost = len(questions) - sum(replies)
        if self._edns and any(answer.rcode in USEFUL for answer in self._prefetched.values()):
            self._has_used_edns = True

    def _send(self, channel: socket.socket, unsent: Iterator[Question], waiting: _Waiting) -> bool:
        """Send what may be in flight; returns whether there are answers to wait for."""
        while len(waiting) < self.max_in_flight:
            question = next(unsent, None)
            if question is None:
                break
            while (message_id := messages.random_id()) in waiting:
                pass
            try:
                channel.send(self._encode(message_id, question, edns=self._edns))
            except BlockingIOError:
                break
            waiting[message_id] = question, time.monotonic()
        return bool(waiting)

    def _take(self, data: bytes, waiting: _Waiting) -> list[bool]:
        """Whether the reply is whole; nothing if it answers no question."""
        message_id = int.from_bytes(data[:2])
        question, started = waiting.get(message_id, (None, 0.0))
        if question is None:
            return []
        answer = None
        try:
            answer = messages.decode(data, question)
            if answer is None:  # forged or broken; the real answer may still come
                return []
        except TruncatedAnswer:
            pass
        del waiting[message_id]
        log_query(self._address, "UDP", question, started, answer)
        if answer is not None and answer.rcode not in self._refusals | {messages.BADCOOKIE}:
            self._prefetched[question] = answer
        return [answer is not None]

    async def ask_over_tcp(self, question: Question, *, edns: bool = True) -> Answer:
        """Its answer over TCP. Raises NoAnswer."""
        query = self._encode(messages.random_id(), question, edns=edns)
        started = time.monotonic()
        result: Answer | Exception | None = None
        try:
            async with asyncio.timeout(self.timeouts.tcp):
                wire = await transport.exchange(await self._connect(), query, self.timeouts.tcp)
            with contextlib.suppress(TruncatedAnswer):
                result = messages.decode(wire, question)
        except (OSError, ConnectionLost) as error:
            self._answers_tcp = False
            result = error
        result = result or ConnectionLost("its answer cannot be read")
        log_query(self._address, "TCP", question, started, result)
        if isinstance(result, Exception):
            raise _unreachable(result)
        self._answers_tcp = True
        self._lost += 1
        return result

    def reset(self) -> None:
        """Try it again, although it has not answered."""
        self._failures = 0

    @property
    def _limits_udp(self) -> bool:
        """Whether it is better asked over TCP: it loses or truncates many answers over UDP."""
        is_limiting = self._lost >= _MAX_FAILURES and not self._lacks_udp
        return is_limiting and self._answers_tcp is not False

    @property
    def _lacks_udp(self) -> bool:
        """Whether it has never answered over UDP, but should."""
        return self.needs_udp and not self._answers_udp

    @property
    def _refusals(self) -> frozenset[int]:
        """The RCODEs after which to ask again without EDNS."""
        is_decisive = not self._edns or self._same_refusals >= _MAX_FAILURES
        return frozenset() if is_decisive else messages.EDNS_REFUSALS

    async def _ask(self, question: Question) -> Answer:
        refusals = self._refusals
        answer = await self._over_udp_or_tcp(question, edns=self._edns)
        if answer.rcode == messages.BADCOOKIE:  # once with its cookie, then over TCP (section 5.3)
            self._cookie = messages.with_server_cookie(self._cookie, answer)
            answer = await self._over_udp_or_tcp(question, edns=self._edns)
            if answer.rcode == messages.BADCOOKIE:
                answer = await self.ask_over_tcp(question)
        if answer.rcode not in refusals:
            return answer
        plain = await self._over_udp_or_tcp(question, edns=False)
        if plain.rcode == answer.rcode:
            self._same_refusals += 1
            return answer  # which may say more (RFC 8914)
        self._same_refusals = 0
        if plain.rcode in USEFUL and not self._has_used_edns:
            self._edns = False
        return plain

    async def _over_udp_or_tcp(self, question: Question, *, edns: bool) -> Answer:
        if self._limits_udp:
            with contextlib.suppress(NoAnswer):
                return await self.ask_over_tcp(question, edns=edns)
        started = time.monotonic()
        is_truncated = False
        try:
            answer, to_edns = await self._try_udp(question, edns=edns)
        except OSError as error:
            log_query(self._address, "UDP", question, started, error)
            if not isinstance(error, TimeoutError | ConnectionError):
                raise _unreachable(error) from None
            to_edns = edns
        else:
            log_query(self._address, "UDP", question, started, answer)
            self._answers_udp = True
            if answer is not None:
                self._lost = 0
                if to_edns:
                    self._has_used_edns = self._has_used_edns or answer.rcode in USEFUL
                elif edns and not self._has_used_edns:
                    self._edns = False
                return answer
            is_truncated = True
        try:
            # A truncated reply to the last try, which is without EDNS, shows that EDNS gets none.
            answer = await self.ask_over_tcp(question, edns=to_edns)
        except NoAnswer as error:
            if is_truncated:
                raise NoAnswer(f"its answer over UDP is truncated; over TCP, {error}") from None
            raise
        if self._lacks_udp:
            raise NoAnswer(_ONLY_TCP)
        return answer

    async def _try_udp(self, question: Question, *, edns: bool) -> tuple[Answer | None, bool]:
        """The reply to a try (None: truncated), and whether that had EDNS. Raises OSError."""
        loop, waits = asyncio.get_running_loop(), self.timeouts.udp
        # One for all tries, so that a late reply to the first one counts.
        message_id = messages.random_id()
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            # Connected, so that a closed port is noticed, and other addresses are not.
            channel.connect(self._address)
            for number, wait in enumerate(waits, 1):
                # The last is without EDNS, which some servers and firewalls drop (RFC 6891, 6.2.2).
                with_edns = edns and (number < len(waits) or number == 1)
                query = self._encode(message_id, question, edns=with_edns)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await loop.sock_sendall(channel, query)
                        while True:
                            # Lets the timeout come, however many datagrams have arrived.
                            await asyncio.sleep(0)
                            reply = await loop.sock_recv(channel, _MAX_DATAGRAM)
                            if reply[:2] != query[:2]:
                                continue
                            to_edns = edns and (with_edns or messages.OPT_START in reply)
                            try:
                                answer = messages.decode(reply, question)
                            except TruncatedAnswer:
                                return None, to_edns
                            if answer is not None:  # else forged or broken
                                return answer, to_edns
        raise TimeoutError

    def _encode(self, message_id: int, question: Question, *, edns: bool) -> bytes:
        return encode(
            message_id, question, recursion=self.recursion, edns=edns, cookie=self._cookie
        )

    async def _connect(self) -> Streams:
        async with asyncio.timeout(self.timeouts.tcp):
            return await asyncio.open_connection(self.address, self.port)


def _unreachable(error: Exception) -> NoAnswer:
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return NoRoute("there is no route to it")
    reasons = {
        ConnectionLost: str(error), TimeoutError: "it does not answer",
        ConnectionRefusedError: "nothing answers at that address and port",
        ConnectionError: "it closed the connection",
    }  # fmt: skip
    given = (reason for kind, reason in reasons.items() if isinstance(error, kind))
    return NoAnswer(next(given, f"it cannot be reached: {error}"))


def system_nameservers() -> list[Address]:
    """The resolvers that this machine is configured with. Raises ServiceError if none."""
    import dns.resolver

    try:
        return [parse_address(str(server)) for server in dns.resolver.Resolver().nameservers]
    except (dns.exception.DNSException, OSError, ValueError, UsageError) as error:
        raise ServiceError(
            f"no usable DNS resolver is configured on this machine: {printable(str(error))}",
            hint="check /etc/resolv.conf or the network settings, or name the servers or zones "
            "yourself (check-dns: --server IP; DNS output: --zone ZONE)",
        ) from None


class RecursiveResolver:
    """Asks several resolvers, which may validate with DNSSEC, until one gives a useful answer."""

    def __init__(self, nameservers: Sequence[Address], max_in_flight: int) -> None:
        self._servers = [
            Server(*address, max_in_flight=max_in_flight, recursion=True, needs_udp=False)
            for address in nameservers
        ]

    async def ask(self, question: Question) -> Answer:
        """The first useful answer. Raises NoAnswer if there is none."""
        reason = NoAnswer("no DNS resolver is configured on this machine")
        for server in self._servers:
            try:
                answer = await _ask_validated(server, question)
            except NoAnswer as error:
                reason = NoAnswer(f"the resolver {server.address}: {error}")
                continue
            if answer.rcode in USEFUL:
                return answer
            rcode = messages.rcode_text(answer.rcode)
            reason = ErrorAnswer(f"the resolver {server.address}: it answers {rcode}")
        raise reason

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Ask the first resolver many questions in one burst; see Server.prefetch."""
        for server in self._servers[:1]:
            await server.prefetch(list(map(validated, questions)))

    def reset(self) -> None:
        """See Server.reset."""
        for server in self._servers:
            server.reset()


def validated(question: Question) -> Question:
    """The question that has the resolver say whether it has validated the answer."""
    return question._replace(flags=messages.AUTHENTIC)


async def _ask_validated(server: Server, question: Question) -> Answer:
    """The answer; a bogus one if the resolver has it, but cannot validate it. Raises NoAnswer.

    SERVFAIL alone tells little: a resolver that does not validate may remember a failure, and
    forget it when validation is off (as BIND does, for a second).
    """
    answer = await server.ask(validated(question))
    if answer.rcode != messages.SERVFAIL:
        return answer
    unchecked = await server.ask(question._replace(flags=messages.CHECKING_DISABLED))
    if unchecked.rcode not in USEFUL:
        return answer
    # The name that was asked for, and those that its aliases lead to.
    aliases = [data.target for data in unchecked.data(messages.CNAME)]
    for name in [question.name, *aliases[: messages.MAX_ALIASES]]:
        if await _is_signed(server, name, question.rdtype):
            # With the extended error of the answer (RFC 8914).
            options = answer.message.options if answer.message else ()
            errors = [str(option) for option in options if isinstance(option, EDEOption)]
            reason = f"the resolver {server.address} cannot validate {question} (DNSSEC)"
            extended = printable("; ".join(errors)[:_MAX_ERROR])
            return unchecked._replace(bogus=f"{reason}: {extended}" if extended else reason)
    return unchecked


async def _is_signed(server: Server, name: dns.name.Name, rdtype: int) -> bool:
    """Whether the records of a name have to be signed, by the closest zone that validates."""
    is_record = rdtype == messages.TXT  # not the apex of a zone
    while len(name) > 1:  # below the root
        try:
            answer = await server.ask(validated(messages.make_question(name, messages.DS)))
        except NoAnswer:
            return False
        if answer.rcode != messages.SERVFAIL:
            return answer.is_validated and (is_record or bool(answer.data(messages.DS)))
        name, is_record = name.parent(), False
    return False
