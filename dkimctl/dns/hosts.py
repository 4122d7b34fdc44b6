"""The addresses of name servers, and what asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from dkimctl.dns.messages import AAAA, A, Answer, make_question
from dkimctl.dns.nameserver import NoAnswer, Server
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.dns.zones import look_up

_T = TypeVar("_T")


class Hosts:
    """Finds the addresses of hosts, and caches them. `make_server` makes a server for an address.

    Zones that share an address share the server.
    """

    def __init__(self, resolver: RecursiveResolver, make_server: Callable[[str], Server]) -> None:
        self._resolver = resolver
        self._make_server = make_server
        self._servers: dict[str, Server] = {}  # by address
        self._addresses: dict[str, asyncio.Task[Sequence[str] | NoAnswer]] = {}  # by host

    async def addresses(self, hosts: Iterable[str]) -> dict[str, Sequence[str] | NoAnswer]:
        """The addresses of each host, empty if there is no such host; or why they are not known."""
        unique = list(dict.fromkeys(hosts))
        found = await asyncio.gather(*(once(self._addresses, host, self._find) for host in unique))
        return dict(zip(unique, found, strict=True))

    def server(self, address: str) -> Server:
        if address not in self._servers:
            self._servers[address] = self._make_server(address)
        return self._servers[address]

    def forget(self) -> None:
        """Empty the cache, and ask servers again that did not answer."""
        self._addresses.clear()
        for server in self._servers.values():
            server.reset_failures()

    async def _find(self, host: str) -> Sequence[str] | NoAnswer:
        try:
            answer = await look_up(self._resolver, make_question(host, A))
        except NoAnswer as error:
            return error
        addresses = [data.address for data in answer_data(answer, A)]
        try:
            answer = await look_up(self._resolver, make_question(host, AAAA))
        except NoAnswer as error:
            return addresses or error  # some resolvers fail on AAAA alone: then there is no IPv6
        return addresses + [data.address for data in answer_data(answer, AAAA)]


def answer_data(answer: Answer, rdtype: int) -> list[Any]:
    """The data of the answer section's records of this type, in class IN alone."""
    from dns.rdataclass import IN

    if answer.message is None:
        return []
    wanted = (rdtype, IN)
    rrsets = [rrset for rrset in answer.message.answer if (rrset.rdtype, rrset.rdclass) == wanted]
    return [data for rrset in rrsets for data in rrset]


async def once(
    tasks: dict[str, asyncio.Task[_T]], key: str, find: Callable[[str], Awaitable[_T]]
) -> _T:
    """What `find` gives for the key, called once for it even at the same time."""
    if key not in tasks:
        tasks[key] = asyncio.ensure_future(find(key))
    return await asyncio.shield(tasks[key])
