"""The servers that resolvers may ask about a zone: those of the zone, and of its delegation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dkimctl.dns.delegations import Delegation, Delegations
from dkimctl.dns.hosts import Hosts, answer_data, once
from dkimctl.dns.messages import NS, make_question, to_text
from dkimctl.dns.nameserver import NameServer, NoAnswer, Server, UnresolvedServer
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.dns.zones import find_zone, look_up

_ONLY_DELEGATED = ", only in the delegation"
_ONLY_OWN = ", only in the zone's own NS records"

_Addresses = Mapping[str, Sequence[str] | NoAnswer]  # by host


class Zone(NamedTuple):
    """A zone (its name, without trailing dot) and its authoritative servers.

    `unknown_delegation`: why it is not known which servers the zone above names, or "".
    `is_secure`: the resolver validates it with DNSSEC; `bogus`: why it cannot, but should, or "".
    """

    name: str
    servers: Sequence[NameServer]
    unknown_delegation: str = ""
    is_secure: bool = False
    bogus: str = ""


class ZoneServers:
    """Finds the authoritative servers of zones, and caches what it found.

    `make_server` makes one for an address.
    """

    def __init__(self, resolver: RecursiveResolver, make_server: Callable[[str], Server]) -> None:
        self._resolver = resolver
        self._hosts = Hosts(resolver, make_server)
        self._delegations = Delegations(resolver, self._hosts)
        self._apexes: dict[str, asyncio.Task[str | None]] = {}  # by a name in the zone
        self._zones: dict[str, asyncio.Task[Zone]] = {}

    async def zone_with(self, name: str) -> Zone | None:
        """The zone that a name is in; None if DNS has none. Raises NoAnswer."""
        zone = await once(self._apexes, name, self._find_apex)
        return None if zone is None else await self.zone(zone)

    async def zone(self, name: str) -> Zone:
        """The zone with this name. Raises NoAnswer if DNS gives no server with an address."""
        return await once(self._zones, name, self._find_zone)

    def forget(self) -> None:
        """Empty the caches, and ask servers again that did not answer."""
        self._apexes.clear()
        self._zones.clear()
        self._delegations.forget()
        self._hosts.forget()
        self._resolver.reset_failures()

    async def _find_apex(self, name: str) -> str | None:
        return await find_zone(name, self._resolver)

    async def _find_zone(self, name: str) -> Zone:
        answer = await look_up(self._resolver, make_question(name, NS))
        hosts = sorted({to_text(data.target) for data in answer_data(answer, NS)})
        delegation: Delegation = {}
        unknown = ""
        try:
            delegation = await self._delegations.find(name)
        except NoAnswer as error:
            unknown = f"the delegation of {name} is not known: {error}"
        servers = await self._find_servers(hosts, delegation)
        if not servers:
            raise NoAnswer(f"DNS names no server with an address for the zone {name}")
        return Zone(name, servers, unknown, answer.is_validated, answer.bogus)

    async def _find_servers(self, hosts: Sequence[str], delegation: Delegation) -> list[NameServer]:
        without_glue = [host for host, glue in delegation.items() if not glue]
        addresses = await self._hosts.addresses([*hosts, *without_glue])
        own = {host: addresses[host] for host in hosts}
        delegated = {host: glue or addresses[host] for host, glue in delegation.items()}
        return [*_unresolved(own, delegated), *self._at_addresses(own, delegated)]

    def _at_addresses(self, own: _Addresses, delegated: _Addresses) -> Iterator[NameServer]:
        """The server at each address, under the names of all its hosts."""
        hosts_at, delegated_at = _by_address(own), _by_address(delegated)
        for address in hosts_at | delegated_at:
            hosts = sorted(hosts_at.get(address, set()) | delegated_at.get(address, set()))
            side = ""
            if address not in hosts_at:
                side = _ONLY_DELEGATED
            elif delegated and delegated.keys().isdisjoint(hosts):
                side = _ONLY_OWN
            label = f"{', '.join(hosts)} ({address}){side}"
            yield NameServer(label, frozenset(hosts), self._hosts.server(address))


def _by_address(addresses: _Addresses) -> dict[str, set[str]]:
    """The hosts at each address."""
    hosts: dict[str, set[str]] = {}
    for host, of_host in addresses.items():
        for address in () if isinstance(of_host, NoAnswer) else of_host:
            hosts.setdefault(address, set()).add(host)
    return hosts


def _unresolved(own: _Addresses, delegated: _Addresses) -> Iterator[NameServer]:
    """A server for each host whose addresses are not known."""
    for host, addresses in {**delegated, **own}.items():
        if isinstance(addresses, NoAnswer):
            side = "" if host in own else _ONLY_DELEGATED
            if delegated and host not in delegated:
                side = _ONLY_OWN
            reason = NoAnswer(f"its address is not known: {addresses}")
            yield NameServer(f"{host}{side}", frozenset((host,)), UnresolvedServer(reason))
