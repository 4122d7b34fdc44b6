"""The zones that names are in, and the servers that are authoritative for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from dkimctl.errors import ServiceError, UsageError
from dkimctl.resolver.messages import AAAA, NS, SOA, A, Answer, Question, make_question, to_text
from dkimctl.resolver.nameservers import Address, RecursiveResolver
from dkimctl.resolver.server import NameServer, NoAnswer, Server, UnresolvedServer
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    import dns.name

_MAX_IN_FLIGHT = 32  # questions to one resolver, which others use as well
_MAX_NAMED = 10
_ALTERNATIVE = "name your zones with --zone"

_T = TypeVar("_T")


class Zone(NamedTuple):
    """A zone (its name, without trailing dot) and its authoritative servers."""

    name: str
    servers: Sequence[NameServer]


class Resolver(Protocol):
    """What answers questions. `ask` raises NoAnswer."""

    async def ask(self, question: Question) -> Answer: ...


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

    candidate = dns.name.from_text(name)
    while len(candidate) > 2:  # the root is a label, too
        apex = _apex_above(candidate, await resolver.ask(make_question(candidate, SOA)))
        if apex is not None:
            return to_text(apex) if len(apex) > 2 else None
        candidate = candidate.parent()
    raise NoAnswer("the resolver has no SOA record at or above it")


class ZoneServers:
    """Finds the authoritative servers of zones, and caches what it found.

    `make_server` makes one for an address; zones that share an address share the server.
    """

    def __init__(self, resolver: RecursiveResolver, make_server: Callable[[str], Server]) -> None:
        self._resolver = resolver
        self._make_server = make_server
        self._servers: dict[str, Server] = {}  # by address
        self._zones: dict[str, asyncio.Task[Zone]] = {}
        self._hosts: dict[str, asyncio.Task[Sequence[str] | NoAnswer]] = {}  # addresses

    async def zone_with(self, name: str) -> Zone | None:
        """The zone that a name is in; None if DNS has none. Raises NoAnswer."""
        zone = await find_zone(name, self._resolver)
        return None if zone is None else await self.zone(zone)

    async def zone(self, name: str) -> Zone:
        """The zone with this name. Raises NoAnswer if DNS gives no server with an address."""
        return await _once(self._zones, name, self._find_servers)

    def forget(self) -> None:
        """Empty the cache, and ask servers again that did not answer."""
        self._zones.clear()
        self._hosts.clear()
        self._resolver.reset_failures()
        for server in self._servers.values():
            server.reset_failures()

    async def _find_servers(self, zone: str) -> Zone:
        answer = await self._resolver.ask(make_question(zone, NS))
        hosts = sorted({to_text(data.target) for data in _answer_data(answer, NS)})
        of_hosts = await asyncio.gather(
            *(_once(self._hosts, host, self._find_host) for host in hosts)
        )
        unresolved: list[NameServer] = []
        hosts_at: dict[str, list[str]] = {}  # by address, which several hosts may share
        for host, addresses in zip(hosts, of_hosts, strict=True):
            if isinstance(addresses, NoAnswer):
                reason = NoAnswer(f"its address is not known: {addresses}")
                unresolved.append(NameServer(host, frozenset((host,)), UnresolvedServer(reason)))
            else:
                for address in addresses:
                    hosts_at.setdefault(address, []).append(host)
        servers = unresolved + [self._named(address, at) for address, at in hosts_at.items()]
        if not servers:
            raise NoAnswer(f"DNS names no server with an address for the zone {zone}")
        return Zone(zone, servers)

    def _named(self, address: str, hosts: Sequence[str]) -> NameServer:
        label = f"{', '.join(hosts)} ({address})"
        return NameServer(label, frozenset(hosts), self._server(address))

    async def _find_host(self, host: str) -> Sequence[str] | NoAnswer:
        """The host's addresses, or why they are not known."""
        try:
            return await self._addresses(host)
        except NoAnswer as error:
            return error

    async def _addresses(self, host: str) -> list[str]:
        """Its IPv4 and IPv6 addresses; empty if there is no such host."""
        answer = await self._resolver.ask(make_question(host, A))
        addresses = [data.address for data in _answer_data(answer, A)]
        try:
            answer = await self._resolver.ask(make_question(host, AAAA))
        except NoAnswer:
            if not addresses:
                raise
            return addresses  # some resolvers fail on AAAA alone: then there is no IPv6
        return addresses + [data.address for data in _answer_data(answer, AAAA)]

    def _server(self, address: str) -> Server:
        if address not in self._servers:
            self._servers[address] = self._make_server(address)
        return self._servers[address]


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

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(find(name)) for name in names}
    except* ServiceError as errors:
        raise errors.exceptions[0] from None
    return {name: task.result() for name, task in tasks.items()}


def _apex_above(name: dns.name.Name, answer: Answer) -> dns.name.Name | None:
    """The apex of the name's zone, if the answer has it; the SOA of an alias's target is not it."""
    if answer.message is None:
        return None
    for rrset in (*answer.message.answer, *answer.message.authority):
        if rrset.rdtype == SOA and name.is_subdomain(rrset.name):
            return rrset.name
    return None


def _answer_data(answer: Answer, rdtype: int) -> list[Any]:
    """The data of the answer section's records of this type, in class IN alone."""
    from dns.rdataclass import IN

    if answer.message is None:
        return []
    wanted = (rdtype, IN)
    rrsets = [rrset for rrset in answer.message.answer if (rrset.rdtype, rrset.rdclass) == wanted]
    return [data for rrset in rrsets for data in rrset]


async def _once(
    tasks: dict[str, asyncio.Task[_T]], key: str, find: Callable[[str], Awaitable[_T]]
) -> _T:
    """What `find` gives for the key, called once for it even at the same time."""
    if key not in tasks:
        tasks[key] = asyncio.ensure_future(find(key))
    return await asyncio.shield(tasks[key])
