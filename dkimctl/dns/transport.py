"""Many questions to one server over TCP, and signatures of messages (TSIG, RFC 8945)."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dns.exception
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig

from dkimctl.addresses import Address
from dkimctl.dns import messages
from dkimctl.dns.messages import Answer, Question, TruncatedAnswer
from dkimctl.text import format_duration

_SILENT, _CLOSED = "it does not answer", "it closed the connection"
IN_FLIGHT = 128  # questions over TCP, which fit into the buffers of a connection
_MAX_CONNECTIONS = 16  # at a time, to a server that closes each after a few answers
_MAX_SILENCES = 2  # connections on which a server stops to answer
_HEAD = struct.pack("!HHI", dns.rdatatype.TSIG, dns.rdataclass.ANY, 0)  # type, class and TTL
_TIME = struct.Struct("!HIH")  # 48 bits of seconds, and the fudge
_FUDGE = 300  # seconds that clocks may differ (section 10)
_NO_ERROR = bytes(4)  # no error, and no other data
_validate: Callable[..., Any] = dns.tsig.validate
_POINTER = b"\xc0"  # what a compressed name ends with, in place of an empty label

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ConnectionLost(Exception):
    """The server closed the connection, or did not answer in time; the text says which."""


class UnreadableAnswer(Exception):
    """An answer to `question` over TCP that is truncated, or that cannot be parsed."""

    def __init__(self, why: str, question: Question) -> None:
        super().__init__(why)
        self.question = question


async def exchange(streams: Streams, wire: bytes, timeout: float) -> bytes:
    """The answer to one message over TCP (RFC 1035 section 4.2.2). Raises ConnectionLost."""
    reader, writer = streams
    try:
        async with asyncio.timeout(timeout):
            writer.write(_sized(wire))
            while True:
                answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                if answer[:2] == wire[:2]:
                    return answer
    except TimeoutError:
        raise ConnectionLost(_SILENT) from None
    except (OSError, EOFError):
        raise ConnectionLost(_CLOSED) from None
    finally:
        writer.transport.abort()


@dataclass(eq=False)
class Pipeline:
    """Asks over few TCP connections, answered in any order (RFC 7766 section 6.2.1.1)."""

    connect: Callable[[], Awaitable[Streams]]
    server: Address  # for the log
    timeout: float  # the longest wait for the next answer, in seconds
    recursion: bool = False
    edns: bool = False
    in_flight: int = IN_FLIGHT
    signer: Signer | None = None
    answers: dict[Question, Answer] = field(default_factory=dict)
    _capacity: int = sys.maxsize  # questions that a connection answers
    _silences: int = 0

    async def ask(self, questions: Iterable[Question]) -> None:
        """Ask them all; `answers` gets what comes, even if an error ends it.

        A server may close a connection after some answers, or stop to answer: the rest is asked on
        others, each of which gets only as many questions as that one answered. Raises
        ConnectionLost, UnreadableAnswer, and what `connect` and the signer raise.
        """
        unasked = deque(dict.fromkeys(questions))
        while unasked:
            number = min(-(-len(unasked) // self._capacity), _MAX_CONNECTIONS)
            rounds = (self._ask_once(unasked) for _ in range(number))
            for error in await asyncio.gather(*rounds, return_exceptions=True):
                if error is not None:
                    raise error

    async def _ask_once(self, unasked: deque[Question]) -> None:
        """Ask over one connection; puts questions without an answer back."""
        reader, writer = await self.connect()
        waiting: dict[bytes, tuple[Question, bytes, float]] = {}  # by message ID
        asked, now = 0, asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self.timeout) as wait:
                while True:
                    batch: list[bytes] = []
                    # Half of what may be in flight at least, or all.
                    while (
                        (batch or len(waiting) <= self.in_flight // 2)
                        and len(waiting) < self.in_flight
                        and asked < self._capacity
                        and unasked
                    ):
                        question, mac = unasked.popleft(), b""
                        wire = messages.encode(
                            asked & 0xFFFF,  # an ID may be guessed
                            question, recursion=self.recursion, edns=self.edns,
                        )  # fmt: skip
                        if self.signer:
                            wire, mac = self.signer.sign(wire)
                        waiting[wire[:2]] = question, mac, time.monotonic()
                        batch.append(_sized(wire))
                        asked += 1
                    writer.write(b"".join(batch))
                    if not waiting:
                        return
                    size = int.from_bytes(await reader.readexactly(2))
                    # Messages that answer nothing do not extend the wait.
                    if self._take(await reader.readexactly(size), waiting):
                        wait.reschedule(now() + self.timeout)
        except (OSError, EOFError) as error:
            is_timeout = isinstance(error, TimeoutError)
            self._silences += is_timeout
            answered = asked - len(waiting)
            is_overtaxed = answered or (asked > 1 and not is_timeout)
            if not is_overtaxed or self._silences > _MAX_SILENCES:
                raise ConnectionLost(_SILENT if is_timeout else _CLOSED) from None
            self._capacity = min(self._capacity, max(answered, 1))
        finally:
            unasked.extendleft(question for question, _, _ in waiting.values())
            writer.transport.abort()  # does not wait for a server that reads nothing

    def _take(self, wire: bytes, waiting: dict[bytes, tuple[Question, bytes, float]]) -> bool:
        """Take in a message; returns whether it is an answer."""
        message_id = wire[:2]
        question, mac, sent = waiting.get(message_id, (None, b"", 0.0))
        if question is None:
            return False
        if self.signer:
            wire = self.signer.verify(wire, mac, or_refusal=True)
        try:
            answer = messages.decode(wire, question)
        except TruncatedAnswer:
            raise UnreadableAnswer("it is truncated, although sent over TCP", question) from None
        if answer is None:
            raise UnreadableAnswer("it cannot be read", question)
        del waiting[message_id]
        self.answers[question] = answer
        messages.log_query(self.server, "TCP", question, sent, answer)
        return True


class NotTrusted(Exception):
    """An answer without signature, or with a wrong one; the text says which."""


class SignatureRefused(Exception):
    """The server says what is wrong with our signature: BADKEY, BADSIG, BADTIME, or another."""

    def __init__(self, error: int, server_time: int | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.server_time = server_time


class Signer:
    """Signs messages, and verifies the answers."""

    def __init__(self, key: dns.tsig.Key) -> None:
        self._name = key.name.to_digestable()
        self._algorithm = key.algorithm.to_digestable()
        # In the digest stand the name, class and TTL of the record, and the algorithm.
        self._variables = self._name + _HEAD[2:] + self._algorithm
        # In a function, the secret is in no repr.
        self._key: Callable[[], dns.tsig.Key] = lambda: key
        mac_size = dns.tsig.mac_sizes[key.algorithm]
        #: The bytes that a signature adds to a message.
        self.size = len(self._variables) + 4 + _TIME.size + 2 + mac_size + 2 + len(_NO_ERROR)

    def sign(self, wire: bytes) -> tuple[bytes, bytes]:
        """The message with a signature; and its MAC, with which the answer is verified."""
        now = int(time.time())
        signed_at = _TIME.pack(now >> 32, now & 0xFFFFFFFF, _FUDGE)
        context = dns.tsig.get_context(self._key())  # type: ignore[no-untyped-call]
        context.update(b"".join((wire, self._variables, signed_at, _NO_ERROR)))
        mac: bytes = context.sign()
        data = b"".join((self._algorithm, signed_at, _sized(mac), wire[:2], _NO_ERROR))
        return b"".join((_recounted(wire, 1), self._name, _HEAD, _sized(data))), mac

    def verify(self, wire: bytes, request_mac: bytes, *, or_refusal: bool = False) -> bytes:
        """The answer without its signature. Raises NotTrusted, SignatureRefused.

        `or_refusal`: REFUSED needs none: Knot DNS signs no refusal of names in none of its zones.
        """
        # The TSIG record is the last one (section 5.1); found at a wrong place, it is wrong.
        head = wire.rfind(_HEAD)
        start = head - (2 if wire[head - 2 : head - 1] >= _POINTER else len(self._name))
        at = head + len(_HEAD) + 2
        record: Any = None
        is_last = int.from_bytes(wire[at - 2 : at]) == len(wire) - at
        if start > 0 and is_last and wire[10:12] != bytes(2):
            with contextlib.suppress(dns.exception.DNSException):
                kind = dns.rdataclass.ANY, dns.rdatatype.TSIG
                record = dns.rdata.from_wire(*kind, wire, at, len(wire) - at)
        if record is None:
            rcode = int.from_bytes(wire[3:4]) & 0xF
            if or_refusal and rcode == messages.REFUSED:
                return wire
            raise NotTrusted(f"its answer ({messages.rcode_text(rcode)}) is not signed")
        now = int(time.time())
        wrong: NotTrusted | SignatureRefused | None = None
        try:
            _validate(wire, self._key(), self._key().name, record, now, request_mac, start)
        except dns.tsig.PeerError:
            has_time = len(record.other) == 6  # octets, with BADTIME (section 5.2.3)
            server_time = int.from_bytes(record.other) if has_time else None
            wrong = SignatureRefused(int(record.error), server_time)
        except dns.tsig.BadTime:
            difference = format_duration(abs(record.time_signed - now))
            wrong = NotTrusted(f"the time of its answer differs by {difference} from ours")
        except dns.exception.DNSException:
            wrong = NotTrusted("the signature of its answer is wrong")
        if wrong is not None:
            raise wrong  # here, since the frames of dnspython's error hold the secret
        original_id: int = record.original_id
        return original_id.to_bytes(2) + _recounted(wire[:start], -1)[2:]


def _sized(data: bytes) -> bytes:
    """The data after its length."""
    return len(data).to_bytes(2) + data


def _recounted(wire: bytes, difference: int) -> bytes:
    """The message with another number of additional records in its header."""
    return wire[:10] + (int.from_bytes(wire[10:12]) + difference).to_bytes(2) + wire[12:]
