"""Where in DNS records belong: their zones, and who serves those."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns.hosts import answer_data, once
from dkimctl.dns.messages import NS, make_question, to_text
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.dns.zones import Resolver, find_zone, look_up
from dkimctl.errors import ServiceError
from dkimctl.text.addresses import Address
from dkimctl.text.dns_names import zone_finder

_MAX_IN_FLIGHT = 32  # questions to a resolver that others use as well


class Trouble(StrEnum):
    """Why something about a place is not known."""

    NONE = ""
    NO_ZONE = "no_zone"  # DNS has none with this name
    NO_ANSWER = "no_answer"


class Place(NamedTuple):
    """The zone of a name ("": not known) and its name servers, without trailing dots.

    `reason` says what DNS answered, if there is trouble.
    """

    zone: str = ""
    name_servers: tuple[str, ...] = ()
    trouble: Trouble = Trouble.NONE
    reason: str = ""


def given_places(names: Iterable[str], zones: Sequence[str]) -> dict[str, Place]:
    """The place of each name in the longest of `zones`; nothing is asked."""
    find = zone_finder(zones)
    return {name: Place(find(name) or "") for name in names}


def find_places(
    names: Iterable[str], system_nameservers: Callable[[], Sequence[Address]]
) -> dict[str, Place]:
    """The place of each name, as DNS has it; without an answer, what is known."""
    unique = list(dict.fromkeys(names))
    try:
        resolver = RecursiveResolver(system_nameservers(), _MAX_IN_FLIGHT)
    except ServiceError as error:
        return dict.fromkeys(unique, Place(trouble=Trouble.NO_ANSWER, reason=error.message))
    return asyncio.run(look_up_places(unique, resolver))


async def look_up_places(names: Sequence[str], resolver: Resolver) -> dict[str, Place]:
    """The place of each of these names, which differ."""
    tasks: dict[str, asyncio.Task[Place]] = {}

    async def find_place(name: str) -> Place:
        try:
            zone = await find_zone(name, resolver)
        except NoAnswer as error:
            return Place(trouble=Trouble.NO_ANSWER, reason=str(error))
        if zone is None:
            return Place(trouble=Trouble.NO_ZONE, reason="DNS has no zone for it")
        return await once(tasks, zone, find_name_servers)

    async def find_name_servers(zone: str) -> Place:
        try:
            answer = await look_up(resolver, make_question(zone, NS))
        except NoAnswer as error:
            return Place(zone, trouble=Trouble.NO_ANSWER, reason=str(error))
        hosts = {to_text(data.target) for data in answer_data(answer, NS)}
        return Place(zone, tuple(sorted(hosts)))

    places = await asyncio.gather(*map(find_place, names))
    return dict(zip(names, places, strict=True))
