"""The log of --verbose: each query to a name server, and its answer."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

from dkimctl.dns.messages import TXT, Answer, Question, rcode_name
from dkimctl.text.escaping import few, quoted

_log = logging.getLogger("dkimctl.dns")


class QueryLog:
    """Logs the queries to one server. If logging is off, it costs next to nothing."""

    def __init__(self, address: str, port: int) -> None:
        self._address = address
        self._port = port

    @property
    def is_on(self) -> bool:
        return _log.isEnabledFor(logging.INFO)

    @contextlib.contextmanager
    def exchange(
        self, transport: str, question: Question
    ) -> Iterator[Callable[[Answer | None], None]]:
        """Log a question that is asked in the block.

        The block calls the given function with the answer (None: truncated), or raises why there
        is none.
        """
        if not self.is_on:
            yield _ignore
            return
        started = time.monotonic()
        try:
            yield lambda answer: self.answered(transport, question, answer, started)
        except Exception as error:
            self.failed(transport, question, started, error)
            raise

    def answered(
        self, transport: str, question: Question, answer: Answer | None, started: float
    ) -> None:
        """`started` is when the question was sent, by time.monotonic."""
        text = "truncated" if answer is None else _described(answer, question)
        self._write(transport, question, text, started)

    def failed(self, transport: str, question: Question, started: float, error: Exception) -> None:
        why = "" if isinstance(error, TimeoutError) else getattr(error, "strerror", str(error))
        self._write(transport, question, ": ".join(filter(None, ("no answer", why))), started)

    def _write(self, transport: str, question: Question, text: str, started: float) -> None:
        from dkimctl.text.addresses import Address

        server, elapsed = Address(self._address, self._port), (time.monotonic() - started) * 1000
        _log.info("%s %s: %s: %s, %.0f ms", server, transport, question, text, elapsed)


def _ignore(answer: Answer | None) -> None:
    """Nothing is logged."""


def _described(answer: Answer, question: Question) -> str:
    """The RCODE, flags as dig writes them (aa, ad), and the records in short."""
    flags = (" aa" if answer.is_authoritative else "") + (" ad" if answer.is_validated else "")
    return f"{rcode_name(answer)}{flags}, {_content(answer, question)}"


def _content(answer: Answer, question: Question) -> str:
    if answer.delegated:
        return f"referral to {answer.delegated}"
    data = _data(answer, question)
    parts = [f"alias of {answer.alias}"] if answer.alias else []
    if data:
        parts.append(f"{len(data)} records: {few(data)}" if len(data) > 1 else data[0])
    if not parts:
        parts.append("no record" + (f", zone {answer.zone}" if answer.zone else ""))
    return ", ".join(parts)


def _data(answer: Answer, question: Question) -> list[str]:
    """The records of the type that was asked for, each in short."""
    if question.rdtype == TXT:
        return [quoted(value.decode("utf-8", "surrogateescape")) for value in answer.values]
    records = answer.message.answer if answer.message else ()
    return [
        quoted(str(data)) for rrset in records if rrset.rdtype == question.rdtype for data in rrset
    ]
