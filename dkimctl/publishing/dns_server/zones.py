"""The zones that a server has for names."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from dkimctl.dns.messages import (
    FORMERR,
    NOTIMP,
    SERVFAIL,
    SOA,
    USEFUL,
    Answer,
    Question,
    make_txt_question,
    plain_name,
)
from dkimctl.publishing.dns_server.server import Server

_SOA_IN = struct.pack("!2H", SOA, 1)


class _Step(NamedTuple):
    """Where to ask next for the zone of a name, "" at the end; `zone` is what is known of it."""

    candidate: str
    zone: str = ""


def find_zones(server: Server, names: Sequence[str]) -> dict[str, str | None]:
    """The zone that each name is in; None: in none that the server answers for.

    A name that is delegated is in the zone that delegates it. A zone that the server cannot load is
    found, too: it answers SERVFAIL below its apex. Raises DkimctlError.
    """
    asked = {make_txt_question(name): name.lower() for name in names}
    # A negative answer names the zone as well; and the same questions are asked to read.
    steps = {
        asked[one.question]: _next(server, _Step(asked[one.question]), one.answer)
        for one in server.prefetch(asked)
    }
    while candidates := {step.candidate for step in steps.values() if step.candidate}:
        answers = _ask(server, candidates)
        for name, step in steps.items():
            if step.candidate:
                steps[name] = _next(server, step, answers[step.candidate])
    return {name: steps[name.lower()].zone or None for name in names}


def _ask(server: Server, names: set[str]) -> dict[str, Answer]:
    questions = {Question(plain_name(name) + _SOA_IN, SOA): name for name in names}
    return {questions[one.question]: one.answer for one in server.ask(questions)}


def _next(server: Server, step: _Step, answer: Answer) -> _Step:
    """The step after an answer to the question for records of its candidate."""
    name = step.candidate
    if answer.rcode == SERVFAIL:
        if "." not in name:  # a resolver that knows nothing, rather than a zone
            raise server.errors.of_query(SERVFAIL, f"SOA {name}")
        return _Step(_above(name), name)
    if answer.rcode in (FORMERR, NOTIMP):
        raise server.errors.of_query(answer.rcode, f"SOA {name}")
    if step.zone or answer.rcode not in USEFUL:
        return _Step("", step.zone)
    if answer.delegated:
        return _Step(_above(answer.delegated))
    return _authoritative(name, answer) if answer.is_authoritative else _Step("")


def _authoritative(name: str, answer: Answer) -> _Step:
    if answer.alias:
        return _Step(_above(name))
    if answer.values:
        return _Step(name)
    return _Step("", answer.zone or _apex(answer, name))


def _above(name: str) -> str:
    return name.partition(".")[2]


def _apex(answer: Answer, name: str) -> str:
    """The name, if the answer has its SOA record."""
    records = answer.message.answer if answer.message else ()
    return name if any(rrset.rdtype == SOA for rrset in records) else ""
