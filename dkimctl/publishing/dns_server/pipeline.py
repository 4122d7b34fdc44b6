"""Many questions over one TCP connection, answered in any order (RFC 7766 section 6.2.1.1)."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from dkimctl.dns.messages import (
    REFUSED,
    Answer,
    Question,
    TruncatedAnswer,
    decode,
    encode,
)
from dkimctl.dns.query_log import QueryLog
from dkimctl.publishing.dns_server.connection import Connection
from dkimctl.publishing.dns_server.signing import NotSigned, Signer, Unsigned

_IN_FLIGHT = 128  # questions, which fit into the buffers of a connection


class UnreadableAnswer(Exception):
    """An answer to `question` that is truncated, or that cannot be parsed; the text says which."""

    def __init__(self, why: str, question: Question) -> None:
        super().__init__(why)
        self.question = question


class Response(NamedTuple):
    """The answer to a question; `wire` is its message without the signature."""

    question: Question
    answer: Answer
    wire: bytes


class _Sent(NamedTuple):
    question: Question
    mac: bytes
    at: float  # time.monotonic


class Pipeline:
    """Asks over one connection; `timeout` is the longest wait for the next answer, in seconds."""

    def __init__(
        self, connection: Connection, signer: Signer | Unsigned, timeout: float, log: QueryLog
    ) -> None:
        self.answered = 0
        self._connection = connection
        self._signer = signer
        self._timeout = timeout
        self._log = log
        self._sent: dict[bytes, _Sent] = {}  # by message ID
        self._ids = itertools.cycle(range(1 << 16))  # over TCP they may be guessed

    def ask(self, questions: deque[Question]) -> Iterator[Response]:
        """Takes the questions, and yields the responses.

        Raises ConnectionLost, after it has put those without an answer back; NotTrusted,
        SignatureRefused, UnreadableAnswer.
        """
        try:
            while questions or self._sent:
                self._send(questions)
                yield self._receive()
        finally:
            questions.extend(sent.question for sent in self._sent.values())

    def _send(self, questions: deque[Question]) -> None:
        """Send what may be in flight; half of that at least, or all."""
        if len(self._sent) > _IN_FLIGHT // 2:
            return
        messages = []
        while questions and len(self._sent) < _IN_FLIGHT:
            question = questions.popleft()
            wire = encode(next(self._ids), question, recursion=False, edns=False)
            signed, mac = self._signer.sign(wire)
            self._sent[wire[:2]] = _Sent(question, mac, time.monotonic())
            messages.append(signed)
        if messages:
            self._connection.send(messages, self._timeout)

    def _receive(self) -> Response:
        """The next response; messages that answer nothing do not extend the wait."""
        deadline = time.monotonic() + self._timeout
        while True:
            message = self._connection.receive(deadline)
            if sent := self._sent.get(message[:2]):
                break
        wire = self._verified(message, sent.mac)
        answer = _decoded(wire, sent.question)
        del self._sent[message[:2]]
        self.answered += 1
        if self._log.is_on:
            self._log.answered("TCP", sent.question, answer, sent.at)
        return Response(sent.question, answer, wire)

    def _verified(self, message: bytes, mac: bytes) -> bytes:
        try:
            return self._signer.verify(message, mac)
        except NotSigned as error:
            # Knot DNS signs no refusal of names that are in none of its zones.
            if error.rcode == REFUSED:
                return message
            raise


def _decoded(wire: bytes, question: Question) -> Answer:
    try:
        answer = decode(wire, question)
    except TruncatedAnswer:
        raise UnreadableAnswer("it is truncated, although sent over TCP", question) from None
    if answer is None:
        raise UnreadableAnswer("it cannot be read", question)
    return answer
