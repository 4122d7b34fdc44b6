"""The servers that speak for a zone, as its NS records name them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from dkimctl.resolver.messages import AAAA, NS, A, Answer, question, to_text
from dkimctl.resolver.recursive import RecursiveResolver
from dkimctl.resolver.server import NoAnswer, Server, UnresolvedServer
from dkimctl.resolver.zones import zone_of

_T = TypeVar("_T")


class Zone(NamedTuple):
    """A zone (its name, without trailing dot) and the servers that speak for it."""

    name: str
    servers: Sequence[Server | UnresolvedServer]


class Authorities:
    """Finds the authoritative servers of names, and keeps what it has found.

    `make_server` makes one for an address and a host's name; an address has only one, whatever the
    zones that it speaks for.
    """

    def __init__(
        self, recursor: RecursiveResolver, make_server: Callable[[str, str], Server]
    ) -> None:
        self._recursor = recursor
        self._make_server = make_server
        self._servers: dict[str, Server] = {}  # by address
        self._of_zone: dict[str, asyncio.Task[Zone]] = {}
        self._of_host: dict[str, asyncio.Task[Sequence[Server | UnresolvedServer]]] = {}

    async def of_name(self, name: str) -> Zone | None:
        """The zone that a name is in; None where DNS has none. Raises NoAnswer."""
        zone = await zone_of(name, self._recursor)
        return None if zone is None else await self.of_zone(zone)

    async def of_zone(self, zone: str) -> Zone:
        """A zone. Raises NoAnswer where DNS names no server of it that has an address."""
        return await _once(self._of_zone, zone, self._find)

    def forget(self) -> None:
        """Look everything up anew from now on, and ask those again which have been silent."""
        self._of_zone.clear()
        self._of_host.clear()
        self._recursor.reset_failures()
        for server in self._servers.values():
            server.reset_failures()

    async def _find(self, zone: str) -> Zone:
        answer = await self._recursor.ask(question(zone, NS))
        hosts = sorted({to_text(data.target) for data in _data(answer, NS)})
        found = await asyncio.gather(*(_once(self._of_host, host, self._look_up) for host in hosts))
        servers = dict.fromkeys(itertools.chain.from_iterable(found))  # two may share an address
        if not servers:
            raise NoAnswer(f"DNS names no server with an address for the zone {zone}")
        return Zone(zone, list(servers))

    async def _look_up(self, host: str) -> Sequence[Server | UnresolvedServer]:
        """A server at each of its addresses."""
        try:
            addresses = await self._addresses(host)
        except NoAnswer as error:
            return [UnresolvedServer(host, NoAnswer(f"its address is not known: {error}"))]
        return [self._server(address, host) for address in addresses]

    async def _addresses(self, host: str) -> list[str]:
        """Of both families; none where the host is not there, which nobody can ask then."""
        answer = await self._recursor.ask(question(host, A))
        addresses = [data.address for data in _data(answer, A)]
        try:
            answer = await self._recursor.ask(question(host, AAAA))
        except NoAnswer:
            if not addresses:
                raise
            return addresses  # where only questions for AAAA go wrong, there is no IPv6
        return addresses + [data.address for data in _data(answer, AAAA)]

    def _server(self, address: str, host: str) -> Server:
        if address not in self._servers:
            self._servers[address] = self._make_server(address, host)
        return self._servers[address]


def _data(answer: Answer, kind: int) -> list[Any]:
    """What records of this type are in the answer itself; in another class they hold other data."""
    from dns.rdataclass import IN

    sets = answer.message.answer if answer.message is not None else ()
    return [data for rrset in sets if (rrset.rdtype, rrset.rdclass) == (kind, IN) for data in rrset]


async def _once(
    found: dict[str, asyncio.Task[_T]], key: str, find: Callable[[str], Awaitable[_T]]
) -> _T:
    """What `find` gives for the key; asked for at the same time, it is looked up only once."""
    if key not in found:
        found[key] = asyncio.ensure_future(find(key))
    return await asyncio.shield(found[key])
