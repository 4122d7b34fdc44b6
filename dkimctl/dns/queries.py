"""Which servers are asked about a name, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from dkimctl.dns.authorities import Zone, ZoneServers
from dkimctl.dns.messages import NXDOMAIN, REFUSED, USEFUL, Answer, Question, rcode_name
from dkimctl.dns.nameserver import NameServer, NoAnswer, NoRoute, Server
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.text.addresses import Address

_MAX_LOOKUPS = 32  # at a time, at a resolver that others use as well
_MAX_DELEGATIONS = 4  # below the zone of the signing domain

_T = TypeVar("_T")


class Source(Protocol):
    """Finds the servers to ask. All but `forget` raise NoAnswer.

    `is_given`: they are named by the user, so the same for all names, and what they know from
    other servers counts as well.
    """

    is_given: bool

    async def zone_with(self, name: str) -> Zone:
        """The zone of a name; its name is "" if not known. No servers: DNS has no such zone."""

    async def zone(self, name: str) -> Zone:
        """The zone with this name, which the zone above delegates."""

    async def zone_of_alias(self, target: str, server: NameServer) -> Zone:
        """The zone, with the servers to ask, of the target of a CNAME record that `server` has."""

    async def why_bogus(self, questions: Sequence[Question]) -> list[str]:
        """Why resolvers cannot validate the answer to each question (DNSSEC); "" if they can."""

    def forget(self) -> None:
        """Empty all caches."""


class _AuthoritativeSource:
    is_given = False

    def __init__(self, nameservers: Sequence[Address], max_in_flight: int) -> None:
        self._resolver = RecursiveResolver(nameservers, min(max_in_flight, _MAX_LOOKUPS))
        self._zones = ZoneServers(
            self._resolver, lambda address: Server(address, max_in_flight=max_in_flight)
        )

    async def zone_with(self, name: str) -> Zone:
        return await self._zones.zone_with(name) or Zone("", ())

    async def zone(self, name: str) -> Zone:
        return await self._zones.zone(name)

    async def zone_of_alias(self, target: str, server: NameServer) -> Zone:  # noqa: ARG002
        return await self.zone_with(target)

    async def why_bogus(self, questions: Sequence[Question]) -> list[str]:
        await self._resolver.prefetch(questions)
        return await gather(map(self._why_bogus, questions))

    async def _why_bogus(self, question: Question) -> str:
        try:
            return (await self._resolver.ask(question)).bogus
        except NoAnswer:
            return ""

    def forget(self) -> None:
        self._zones.forget()


class _GivenSource:
    is_given = True

    def __init__(self, servers: Mapping[str, Server | RecursiveResolver]) -> None:
        self._servers = servers  # by label
        named = [NameServer(label, frozenset((label,)), one) for label, one in servers.items()]
        self._zone = Zone("", named)

    async def zone_with(self, name: str) -> Zone:  # noqa: ARG002
        return self._zone

    async def zone(self, name: str) -> Zone:
        raise NoAnswer(f"it names other servers for {name}")

    async def zone_of_alias(self, target: str, server: NameServer) -> Zone:  # noqa: ARG002
        return Zone("", [server])

    async def why_bogus(self, questions: Sequence[Question]) -> list[str]:
        return [""] * len(questions)

    def forget(self) -> None:
        for server in self._servers.values():
            server.reset_failures()


def authoritative(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """Every authoritative server of each name's zone, found through these resolvers."""
    return _AuthoritativeSource(nameservers, max_in_flight)


def given(addresses: Sequence[Address], max_in_flight: int) -> Source:
    """These servers, for every name."""
    return _GivenSource(
        {
            str(address): Server(
                address.host, address.port, max_in_flight=max_in_flight, recursion=True
            )
            for address in addresses
        }
    )


def recursive(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """The resolvers of this machine, each if the one before does not answer."""
    return _GivenSource({"the system's resolver": RecursiveResolver(nameservers, max_in_flight)})


class ServerResponse(NamedTuple):
    """A server's answer, if it is to be trusted, or else why there is none."""

    server: NameServer
    answer: Answer | None
    failure: NoAnswer | None = None


class NotServed(NoAnswer):
    """The server does not have the zone."""


class QueryRunner:
    """Asks servers of a source, all at the same time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def ask(self, servers: Iterable[NameServer], question: Question) -> list[ServerResponse]:
        """The response of each server."""
        return self._checked(await gather(_ask(server, question) for server in servers))

    async def ask_zone(self, zone: Zone, question: Question) -> tuple[Zone, list[ServerResponse]]:
        """The zone, or one below that a server refers to, and the response of each of its servers.

        Raises NoAnswer if the servers of that zone are not known.
        """
        responses = await gather(_ask(server, question) for server in zone.servers)
        for _ in range(_MAX_DELEGATIONS):
            delegated = (one.answer.delegated for one in responses if one.answer is not None)
            below = (name for name in delegated if zone.name and name.endswith(f".{zone.name}"))
            name = next(below, "")
            if not name:
                break
            zone = await self._source.zone(name)
            responses = await gather(_ask(server, question) for server in zone.servers)
        return zone, self._checked(responses)

    def _checked(self, responses: Iterable[ServerResponse]) -> list[ServerResponse]:
        return _without_unroutable([self._trusted(response) for response in responses])

    def _trusted(self, response: ServerResponse) -> ServerResponse:
        """The response; a failure if its answer is second-hand or contradicts itself."""
        answer = response.answer
        if answer is None:
            return response
        if answer.rcode == NXDOMAIN and answer.values:
            reason = "it answers NXDOMAIN, but with a record of that name"
            return ServerResponse(response.server, None, NoAnswer(reason))
        if answer.is_authoritative or (self._source.is_given and answer.is_recursive):
            return response
        return ServerResponse(
            response.server, None, NotServed("it is not authoritative for the zone (lame)")
        )


async def gather(coroutines: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """All the results. A single coroutine is awaited without the cost of a task."""
    work = list(coroutines)
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


def _without_unroutable(responses: Sequence[ServerResponse]) -> list[ServerResponse]:
    """Leave out addresses without a route, if one of their hosts answers at another address."""
    if not any(isinstance(response.failure, NoRoute) for response in responses):
        return list(responses)
    answering = {
        host
        for response in responses
        if response.answer is not None
        for host in response.server.hosts
    }
    return [
        response
        for response in responses
        if not isinstance(response.failure, NoRoute) or answering.isdisjoint(response.server.hosts)
    ]


async def _ask(server: NameServer, question: Question) -> ServerResponse:
    try:
        answer = await server.responder.ask(question)
    except NoAnswer as error:
        return ServerResponse(server, None, error)
    if answer.rcode not in USEFUL:
        kind = NotServed if answer.rcode == REFUSED else NoAnswer
        return ServerResponse(server, None, kind(f"it answers {rcode_name(answer)}"))
    return ServerResponse(server, answer)
