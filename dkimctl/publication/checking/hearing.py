"""What servers say of a name, and whether it is to be relied on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from dkimctl.publication.checking.sources import NameServer, Source
from dkimctl.resolver.messages import NXDOMAIN, USEFUL, Answer, Question, rcode_name
from dkimctl.resolver.server import NoAnswer, NoRoute

_DEEPEST = 4  # delegations below the zone of the signing domain

_T = TypeVar("_T")


class ServerResponse(NamedTuple):
    """What came of asking one server: an answer to rely on, or else why there is none."""

    server: NameServer
    answer: Answer | None
    silence: NoAnswer | None = None


class QueryRunner:
    """Asks the servers of a source, all at the same time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def hear(self, servers: Iterable[NameServer], asked: Question) -> list[ServerResponse]:
        """What each of them says of it."""
        said = await gather(_ask(server, asked) for server in servers)
        return reached([self._relied_on(one) for one in said])

    async def hear_zone(
        self, zone: str, servers: Sequence[NameServer], asked: Question
    ) -> list[ServerResponse]:
        """What each of a zone's servers says, or each of a zone below that they refer to.

        Raises NoAnswer where nobody tells of those.
        """
        said = await gather(_ask(server, asked) for server in servers)
        for _ in range(_DEEPEST):
            below = (one.answer.delegated for one in said if one.answer is not None)
            zone = next((name for name in below if zone and name.endswith(f".{zone}")), "")
            if not zone:
                break
            deeper = await self._source.of_zone(zone)
            said = await gather(_ask(server, asked) for server in deeper)
        return reached([self._relied_on(one) for one in said])

    def _relied_on(self, said: ServerResponse) -> ServerResponse:
        """The same, unless the server knows the zone at second hand, or contradicts itself."""
        answer = said.answer
        if answer is None:
            return said
        if answer.rcode == NXDOMAIN and answer.values:
            contradiction = "it says that there is no such name, and yet gives a record of it"
            return ServerResponse(said.server, None, NoAnswer(contradiction))
        if answer.is_authoritative or (self._source.is_given and answer.is_recursive):
            return said
        return ServerResponse(said.server, None, NoAnswer("it does not speak for the zone (lame)"))


def reached(said: Sequence[ServerResponse]) -> list[ServerResponse]:
    """Without addresses that this machine has no way to, where another of that host answers."""
    answering = {one.server.host for one in said if one.answer is not None}
    return [
        one
        for one in said
        if not isinstance(one.silence, NoRoute) or one.server.host not in answering
    ]


async def gather(work: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """All the results. One alone needs no task of its own, which would take its time."""
    found = list(work)
    return [await found[0]] if len(found) == 1 else await asyncio.gather(*found)


async def _ask(server: NameServer, asked: Question) -> ServerResponse:
    try:
        answer = await server.ask(asked)
    except NoAnswer as error:
        return ServerResponse(server, None, error)
    if answer.rcode not in USEFUL:
        return ServerResponse(server, None, NoAnswer(f"it answers {rcode_name(answer)}"))
    return ServerResponse(server, answer)
