"""The zones that names are in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from dkimctl.dns.messages import SOA, Answer, Question, make_question, to_text
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.errors import ServiceError, UsageError
from dkimctl.text.addresses import Address
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    import dns.name

_MAX_IN_FLIGHT = 32  # questions to one resolver, which others use as well
_MAX_NAMED = 10
_TOP_LABELS = 2  # of a top-level domain: the root is a label, too
_ALTERNATIVE = "name your zones with --zone"


class Resolver(Protocol):
    """What answers questions. `ask` raises NoAnswer."""

    async def ask(self, question: Question) -> Answer: ...


async def look_up(resolver: Resolver, question: Question) -> Answer:
    """The answer. Raises NoAnswer, which names the question."""
    try:
        return await resolver.ask(question)
    except NoAnswer as error:
        raise NoAnswer(f"{question}: {error}") from None


def find_zones(names: Iterable[str], nameservers: Sequence[Address]) -> dict[str, str]:
    """The zone of each name, without trailing dot.

    Raises ServiceError if DNS gives no answer, UsageError that lists the names without a zone
    below a top-level domain.
    """
    unique = list(dict.fromkeys(names))
    zones = asyncio.run(_find_zones(unique, nameservers))
    if missing := [name for name, zone in zones.items() if zone is None]:
        more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
        raise UsageError(
            f"DNS has no zone for {', '.join(map(printable, missing[:_MAX_NAMED]))}{more}",
            hint=f"check the domain names, or {_ALTERNATIVE}",
        )
    return {name: zone for name, zone in zones.items() if zone is not None}


async def find_zone(name: str, resolver: Resolver) -> str | None:
    """The closest name, at or above `name`, that has an SOA record.

    None if that is the root or a top-level domain. Raises NoAnswer.
    """
    import dns.name

    if len(dns.name.from_text(name)) <= _TOP_LABELS:  # as the target of an alias
        return None
    apex = await _find_apex(name, resolver, min_labels=_TOP_LABELS)
    return to_text(apex) if len(apex) > _TOP_LABELS else None


async def find_apex(name: str, resolver: Resolver) -> dns.name.Name:
    """The closest name, at or above `name`, that has an SOA record. Raises NoAnswer."""
    return await _find_apex(name, resolver, min_labels=0)


async def _find_apex(name: str, resolver: Resolver, *, min_labels: int) -> dns.name.Name:
    import dns.name

    candidate = dns.name.from_text(name)
    while len(candidate) > min_labels:
        apex = _apex_above(candidate, await look_up(resolver, make_question(candidate, SOA)))
        if apex is not None:
            return apex
        if candidate == dns.name.root:
            break
        candidate = candidate.parent()
    raise NoAnswer("the resolver has no SOA record at or above it")


async def _find_zones(
    names: Sequence[str], nameservers: Sequence[Address]
) -> dict[str, str | None]:
    resolver = RecursiveResolver(nameservers, _MAX_IN_FLIGHT)

    async def find(name: str) -> str | None:
        try:
            return await find_zone(name, resolver)
        except NoAnswer as error:
            raise ServiceError(
                f"cannot find the zone of {printable(name)}: {error}",
                hint=f"check the DNS resolver of this machine, or {_ALTERNATIVE}",
            ) from None

    # Not a TaskGroup: its ExceptionGroup hides the error, and Python 3.11.2 wraps even what
    # `except*` raises. `asyncio.run` cancels the rest after the first error.
    zones = await asyncio.gather(*map(find, names))
    return dict(zip(names, zones, strict=True))


def _apex_above(name: dns.name.Name, answer: Answer) -> dns.name.Name | None:
    """The apex of the name's zone, if the answer has it; the SOA of an alias's target is not it."""
    if answer.message is None:
        import dns.name

        return dns.name.from_text(answer.zone) if answer.zone else None
    for rrset in (*answer.message.answer, *answer.message.authority):
        if rrset.rdtype == SOA and name.is_subdomain(rrset.name):
            return rrset.name
    return None
