"""What the zone above says of a zone: the hosts it is delegated to (RFC 1034 section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dns.hosts import Hosts, answer_data, once
from dkimctl.dns.messages import (
    NS,
    USEFUL,
    Answer,
    Question,
    make_question,
    name_above,
    rcode_name,
    to_text,
)
from dkimctl.dns.nameserver import NoAnswer, NoRoute, Server
from dkimctl.dns.nameservers import RecursiveResolver
from dkimctl.dns.zones import find_apex, look_up

if TYPE_CHECKING:
    import dns.name

_MAX_SILENT = 3  # servers of one zone; each takes seconds

Delegation = Mapping[str, Sequence[str]]
"""The hosts that the zone above names, each with the addresses it has for them (glue)."""


class _Parent(NamedTuple):
    """A zone that delegates others, and its servers by label."""

    apex: dns.name.Name
    servers: Mapping[str, Server]


class Delegations:
    """Asks the servers of the zone above, and caches which these are."""

    def __init__(self, resolver: RecursiveResolver, hosts: Hosts) -> None:
        self._resolver = resolver
        self._hosts = hosts
        self._apexes: dict[str, asyncio.Task[dns.name.Name]] = {}  # by a name in the zone
        self._parents: dict[str, asyncio.Task[_Parent]] = {}  # by apex

    async def find(self, zone: str) -> Delegation:
        """The delegation of a zone; empty if the servers of the zone above have no referral.

        They have none if they serve the zone itself. Raises NoAnswer if none of them answers, or if
        they do not know of the zone: then only resolvers here do, perhaps from an old answer.
        """
        apex = await once(self._apexes, name_above(zone), self._find_apex)
        parent = await once(self._parents, to_text(apex), self._find_parent)
        referral = await _referral(parent, zone)
        return {} if referral is None else _delegation(referral, zone, parent.apex)

    def forget(self) -> None:
        """Empty the cache."""
        self._apexes.clear()
        self._parents.clear()

    async def _find_apex(self, name: str) -> dns.name.Name:
        return await find_apex(name, self._resolver)

    async def _find_parent(self, name: str) -> _Parent:
        import dns.name

        answer = await look_up(self._resolver, make_question(name, NS))
        hosts = sorted({to_text(data.target) for data in answer_data(answer, NS)})
        servers = {
            f"{host} ({address})": self._hosts.server(address)
            for host, addresses in (await self._hosts.addresses(hosts)).items()
            if not isinstance(addresses, NoAnswer)
            for address in addresses
        }
        if not servers:
            raise NoAnswer(f"DNS names no server with an address for the zone {name}")
        return _Parent(dns.name.from_text(name), servers)


async def _referral(parent: _Parent, zone: str) -> Answer | None:
    """The first referral of its servers, None if they answer something else. Raises NoAnswer."""
    question = make_question(zone, NS)
    silent, is_answered, failure = 0, False, ""
    for label, server in parent.servers.items():
        answer = await _ask(server, question, zone)
        if isinstance(answer, NoAnswer):
            failure = f"{label}: {question}: {answer}"
            silent += not isinstance(answer, NoRoute)
            if silent == _MAX_SILENT:
                break
        elif answer.delegated == zone:
            return answer
        else:
            is_answered = True
    if is_answered:
        return None
    raise NoAnswer(failure)


async def _ask(server: Server, question: Question, zone: str) -> Answer | NoAnswer:
    """The answer, if it is a referral to the zone, or from a zone that the server has."""
    try:
        answer = await server.ask(question)
    except NoAnswer as error:
        return error
    if answer.rcode not in USEFUL:
        return NoAnswer(f"it answers {rcode_name(answer)}")
    if answer.delegated == zone:
        return answer
    if not answer.is_authoritative:
        return NoAnswer("it is not authoritative (lame)")
    if not answer_data(answer, NS) and answer.zone != zone:
        return NoAnswer("it does not delegate the zone")
    return answer


def _delegation(referral: Answer, zone: str, apex: dns.name.Name) -> Delegation:
    """The hosts in a referral; glue for those that are not below the apex is not believed."""
    import dns.name
    import dns.rdatatype
    from dns.rdataclass import IN

    message = referral.message
    if message is None:
        return {}
    name, addresses = dns.name.from_text(zone), (dns.rdatatype.A, dns.rdatatype.AAAA)
    records = message.get_rrset(message.authority, name, IN, dns.rdatatype.NS) or ()
    glue = {
        host: [
            data.address
            for rdtype in addresses
            for data in message.get_rrset(message.additional, host, IN, rdtype) or ()
            if host.is_subdomain(apex)
        ]
        for host in sorted(data.target for data in records)
    }
    return {to_text(host): of_host for host, of_host in glue.items()}
