"""Ask a resolver, which may validate its answers with DNSSEC (RFC 4035 section 3.2)."""

from __future__ import annotations

from dkimctl.resolver.messages import (
    AUTHENTIC,
    CHECKING_DISABLED,
    SERVFAIL,
    USEFUL,
    Answer,
    Question,
)
from dkimctl.resolver.server import Server
from dkimctl.text.escaping import printable

_MAX_ERROR = 200  # characters


def validated(question: Question) -> Question:
    """The question that has the resolver say whether it has validated the answer."""
    return question._replace(flags=AUTHENTIC)


async def ask_validated(server: Server, question: Question) -> Answer:
    """The answer; a bogus one if the resolver has it, but cannot validate it. Raises NoAnswer."""
    answer = await server.ask(validated(question))
    if answer.rcode != SERVFAIL:
        return answer
    unchecked = await server.ask(question._replace(flags=CHECKING_DISABLED))
    if unchecked.rcode not in USEFUL:
        return answer
    reason = f"the resolver {server.address} cannot validate {question} (DNSSEC)"
    return unchecked._replace(bogus=": ".join(filter(None, (reason, _extended_error(answer)))))


def _extended_error(answer: Answer) -> str:
    """The extended error in an answer (RFC 8914), or ""."""
    import dns.edns

    options = answer.message.options if answer.message else ()
    errors = [str(option) for option in options if isinstance(option, dns.edns.EDEOption)]
    return printable("; ".join(errors)[:_MAX_ERROR])
