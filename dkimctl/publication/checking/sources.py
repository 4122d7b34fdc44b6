"""Which servers are asked about a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dkimctl.resolver.addresses import Address
from dkimctl.resolver.authorities import Authorities, Zone
from dkimctl.resolver.messages import Answer, Question
from dkimctl.resolver.recursive import RecursiveResolver
from dkimctl.resolver.server import NoAnswer, Server

_LOOK_UPS = 32  # at the same time, at a resolver that others use as well


class NameServer(Protocol):
    """A server, or what stands for several."""

    @property
    def label(self) -> str: ...

    @property
    def host(self) -> str: ...

    async def ask(self, asked: Question) -> Answer: ...

    async def prepare(self, questions: Sequence[Question]) -> None: ...


class Source(Protocol):
    """Finds the servers that are to be asked.

    `is_given`: they are the same for all names, and what they know at second hand counts as well.
    """

    is_given: bool

    async def zone_of(self, name: str) -> tuple[str, Sequence[NameServer]]:
        """The zone of a name, "" where it is not known, and whom to ask; nobody where DNS has no
        such zone. Raises NoAnswer."""

    async def of_alias(self, name: str, server: NameServer) -> Sequence[NameServer]:
        """Whom to ask about a name that `server` calls the true one. Raises NoAnswer."""

    async def of_zone(self, zone: str) -> Sequence[NameServer]:
        """Whom to ask in place of the zone above it. Raises NoAnswer."""

    def forget(self) -> None:
        """Look everything up anew."""


class _Authoritative:
    is_given = False

    def __init__(self, nameservers: Sequence[Address], max_in_flight: int) -> None:
        self._found = Authorities(
            RecursiveResolver(nameservers, min(max_in_flight, _LOOK_UPS)),
            lambda address, host: Server(
                address, host=host, label=f"{host} ({address})", max_in_flight=max_in_flight
            ),
        )

    async def zone_of(self, name: str) -> tuple[str, Sequence[NameServer]]:
        zone = await self._found.of_name(name)
        return zone or Zone("", ())

    async def of_alias(self, name: str, server: NameServer) -> Sequence[NameServer]:  # noqa: ARG002
        return (await self.zone_of(name))[1]

    async def of_zone(self, zone: str) -> Sequence[NameServer]:
        return (await self._found.of_zone(zone)).servers

    def forget(self) -> None:
        self._found.forget()


class _Given:
    is_given = True

    def __init__(self, servers: Sequence[Server | RecursiveResolver]) -> None:
        self._servers = servers

    async def zone_of(self, name: str) -> tuple[str, Sequence[NameServer]]:  # noqa: ARG002
        return "", self._servers

    async def of_alias(self, name: str, server: NameServer) -> Sequence[NameServer]:  # noqa: ARG002
        return [server]

    async def of_zone(self, zone: str) -> Sequence[NameServer]:
        raise NoAnswer(f"it names other servers for {zone}")

    def forget(self) -> None:
        for server in self._servers:
            server.reset_failures()


def authoritative(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """Every authoritative server of each name's zone, as found through these resolvers."""
    return _Authoritative(nameservers, max_in_flight)


def given(addresses: Sequence[Address], max_in_flight: int) -> Source:
    """These servers, whatever the name."""
    return _Given(
        [
            Server(
                address.host, address.port, label=str(address), max_in_flight=max_in_flight,
                recursion=True,
            )
            for address in dict.fromkeys(addresses)
        ]
    )  # fmt: skip


def recursive(nameservers: Sequence[Address], max_in_flight: int) -> Source:
    """The resolvers of this machine, the next where one does not answer."""
    return _Given([RecursiveResolver(nameservers, max_in_flight)])
