"""Ask a resolver, which may validate its answers with DNSSEC (RFC 4035 section 3.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dkimctl.dns.messages import (
    AUTHENTIC,
    CHECKING_DISABLED,
    DS,
    MAX_ALIASES,
    SERVFAIL,
    TXT,
    USEFUL,
    Answer,
    Question,
    make_question,
)
from dkimctl.dns.nameserver import NoAnswer, Server
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    import dns.name

_MAX_ERROR = 200  # characters


def validated(question: Question) -> Question:
    """The question that has the resolver say whether it has validated the answer."""
    return question._replace(flags=AUTHENTIC)


async def ask_validated(server: Server, question: Question) -> Answer:
    """The answer; a bogus one if the resolver has it, but cannot validate it. Raises NoAnswer.

    SERVFAIL alone tells little: a resolver that does not validate may remember a failure, and
    forget it when validation is off (as BIND does, for a second).
    """
    answer = await server.ask(validated(question))
    if answer.rcode != SERVFAIL:
        return answer
    unchecked = await server.ask(question._replace(flags=CHECKING_DISABLED))
    if unchecked.rcode not in USEFUL:
        return answer
    for name in itertools.islice(_names(question, unchecked), MAX_ALIASES + 1):
        if await _is_signed(server, name, question.rdtype):
            break
    else:
        return unchecked
    reason = f"the resolver {server.address} cannot validate {question} (DNSSEC)"
    return unchecked._replace(bogus=": ".join(filter(None, (reason, _extended_error(answer)))))


def _names(question: Question, answer: Answer) -> Iterator[dns.name.Name]:
    """The name that was asked for, and those that its aliases lead to."""
    from dns.rdatatype import CNAME

    yield question.name
    for rrset in answer.message.answer if answer.message else ():
        if rrset.rdtype == CNAME:
            yield rrset[0].target


async def _is_signed(server: Server, name: dns.name.Name, rdtype: int) -> bool:
    """Whether the resolver has validated that the records of a name have to be signed.

    The closest zone above that it can validate tells so, with a DS record for the way down.
    """
    import dns.name

    is_record = rdtype == TXT  # not the apex of a zone
    while name != dns.name.root:
        try:
            answer = await server.ask(validated(make_question(name, DS)))
        except NoAnswer:
            return False
        if answer.rcode != SERVFAIL:
            return answer.is_validated and (is_record or _has_ds(answer))
        name, is_record = name.parent(), False
    return False


def _has_ds(answer: Answer) -> bool:
    return answer.message is not None and any(one.rdtype == DS for one in answer.message.answer)


def _extended_error(answer: Answer) -> str:
    """The extended error in an answer (RFC 8914), or ""."""
    import dns.edns

    options = answer.message.options if answer.message else ()
    errors = [str(option) for option in options if isinstance(option, dns.edns.EDEOption)]
    return printable("; ".join(errors)[:_MAX_ERROR])
