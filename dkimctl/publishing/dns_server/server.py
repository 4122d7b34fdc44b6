"""One DNS server: many questions at once, or one update."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from dkimctl.dns.messages import Question
from dkimctl.dns.query_log import QueryLog
from dkimctl.errors import DkimctlError
from dkimctl.publishing.dns_server.connection import (
    ConnectionLost,
    Connector,
    Timeouts,
)
from dkimctl.publishing.dns_server.pipeline import Pipeline, Response, UnreadableAnswer
from dkimctl.publishing.dns_server.refusals import Errors
from dkimctl.publishing.dns_server.signing import (
    NotTrusted,
    SignatureRefused,
    Signer,
    Unsigned,
)
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.text.addresses import Address

_MAX_AGE = 10.0  # seconds since a question was prefetched
_HEADER = 12  # bytes
_RESPONSE_TO_UPDATE, _KIND = 0xA8, 0xF8  # in the third byte: QR, and the opcode (RFC 2136)


class UnknownResult(Exception):
    """An update was sent, and may have been made. `error` is why that is not known."""

    def __init__(self, error: DkimctlError) -> None:
        super().__init__(error.message)
        self.error = error


class Server:
    """A DNS server that is asked and updated over TCP, with signatures if there is a key.

    `clock` gives seconds since the epoch.
    """

    def __init__(
        self, address: Address, key: TsigKey | None, timeouts: Timeouts, clock: Callable[[], float]
    ) -> None:
        self.errors = Errors(str(address), key.name if key else "")
        self.signer = Signer(key, clock) if key else Unsigned()
        self._connector = Connector(address, timeouts.connect)
        self.timeouts = timeouts
        self._clock = clock
        self._log = QueryLog(address.host, address.port)
        self._prefetched: dict[Question, Response] = {}
        self._prefetched_at = 0.0  # time.monotonic

    def prefetch(self, questions: Iterable[Question]) -> Iterator[Response]:
        """The responses to all questions, each once; soon after, `ask` gives them once more."""
        self._prefetched_at = time.monotonic()
        self._prefetched = {}
        for response in self._ask(deque(dict.fromkeys(questions))):
            self._prefetched[response.question] = response
            yield response

    def ask(self, questions: Iterable[Question]) -> Iterator[Response]:
        """The responses to all questions, each once, in any order. Raises DkimctlError."""
        if time.monotonic() > self._prefetched_at + _MAX_AGE:
            self._prefetched = {}
        unasked = deque[Question]()
        for question in dict.fromkeys(questions):
            if response := self._prefetched.pop(question, None):
                yield response
            else:
                unasked.append(question)
        yield from self._ask(unasked)

    def _ask(self, unasked: deque[Question]) -> Iterator[Response]:
        """A server may close a connection after some answers: the rest is asked on another one."""
        while unasked:
            with self._connector.connect() as connection:
                pipeline = Pipeline(connection, self.signer, self.timeouts.answer, self._log)
                try:
                    with self._explained():
                        yield from pipeline.ask(unasked)
                except ConnectionLost as lost:
                    if lost.is_timeout or not pipeline.answered:
                        raise self.errors.no_answer(str(lost), str(unasked[-1])) from None

    def update(self, message: bytes, zone: str) -> int:
        """Send an update of a zone; returns the RCODE of the answer.

        Raises DkimctlError if it was not made, UnknownResult if it was sent without a good answer.
        """
        self._prefetched = {}
        wire, mac = self.signer.sign(message)
        with self._connector.connect() as connection, self._explained():
            try:
                connection.send([wire], self.timeouts.update)
                deadline = time.monotonic() + self.timeouts.update
                while (answer := connection.receive(deadline))[:2] != message[:2]:
                    pass
                plain = self.signer.verify(answer, mac)
            except ConnectionLost as lost:
                error = self.errors.no_answer(str(lost), f"the update of the zone {zone}")
                raise UnknownResult(error) from None
            except NotTrusted as wrong:
                raise UnknownResult(self.errors.untrusted(wrong)) from None
        if len(plain) < _HEADER or plain[2] & _KIND != _RESPONSE_TO_UPDATE:
            error = self.errors.no_answer("it cannot be read", f"the update of the zone {zone}")
            raise UnknownResult(error)
        return plain[3] & 0x0F

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise DkimctlError in place of what may be wrong with an answer."""
        try:
            yield
        except SignatureRefused as refused:
            raise self.errors.of_signature(refused, self._clock()) from None
        except NotTrusted as wrong:
            raise self.errors.untrusted(wrong) from None
        except UnreadableAnswer as unreadable:
            raise self.errors.no_answer(str(unreadable), str(unreadable.question)) from None
