"""Which zones names are in, as DNS tells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from dkimctl.errors import ServiceError, UsageError
from dkimctl.resolver.addresses import Address
from dkimctl.resolver.messages import SOA, Answer, Question, question, to_text
from dkimctl.resolver.recursive import RecursiveResolver
from dkimctl.resolver.server import NoAnswer
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    import dns.name

_AT_ONCE = 32  # questions to one resolver, which is mostly there for others as well
_TOLD = 10
_OTHERWISE = "name the zones of your DNS with --zone"


class Asks(Protocol):
    """What can be asked."""

    async def ask(self, asked: Question) -> Answer: ...


def find_zones(names: Iterable[str], nameservers: Sequence[Address]) -> dict[str, str]:
    """The zone of each name: the nearest name above it that has an SOA record, or itself.

    Names and zones are without trailing dot. Raises ServiceError where DNS gives no answer,
    UsageError that lists the names which are in no zone below a top-level domain.
    """
    wanted = list(dict.fromkeys(names))
    found = asyncio.run(_zones_of(wanted, nameservers))
    zones = {name: zone for name, zone in zip(wanted, found, strict=True) if zone is not None}
    if missing := [name for name in wanted if name not in zones]:
        more = f" and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise UsageError(
            f"DNS has no zone for {', '.join(map(printable, missing[:_TOLD]))}{more}",
            hint=f"check the domain names, or {_OTHERWISE}",
        )
    return zones


async def zone_of(name: str, resolver: Asks) -> str | None:
    """The zone of a name; None where that is a top-level domain or the root: nobody's records.

    Raises NoAnswer where DNS does not tell.
    """
    import dns.name

    below = dns.name.from_text(name)
    while len(below) > 2:  # the root is a label, too
        apex = _apex_above(below, await resolver.ask(question(below, SOA)))
        if apex is not None:
            return to_text(apex) if len(apex) > 2 else None
        below = below.parent()
    raise NoAnswer("the resolver tells of no SOA record at or above it")


async def _zones_of(names: Sequence[str], nameservers: Sequence[Address]) -> list[str | None]:
    recursor = RecursiveResolver(nameservers, _AT_ONCE)

    async def find(name: str) -> str | None:
        try:
            return await zone_of(name, recursor)
        except NoAnswer as error:
            raise ServiceError(
                f"cannot find the zone of {printable(name)}: {error}",
                hint=f"check the DNS resolver of this machine, or {_OTHERWISE}",
            ) from None

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(find(name)) for name in names]
    except* ServiceError as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _apex_above(name: dns.name.Name, answer: Answer) -> dns.name.Name | None:
    """The apex of the name's zone, if an answer tells it; an alias tells of another zone."""
    if answer.message is None:
        return None
    for rrset in (*answer.message.answer, *answer.message.authority):
        if rrset.rdtype == SOA and name.is_subdomain(rrset.name):
            return rrset.name
    return None
