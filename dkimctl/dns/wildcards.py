"""What wildcards answer for names that a new record makes exist (RFC 4592 sections 2.2.2, 3.3.1).

With `s1._domainkey.shop.example.com`, the name `shop.example.com` exists: `*.example.com` answers
for it no longer, nor for what is below it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from dns.rdatatype import RdataType

from dkimctl.dns import messages, queries
from dkimctl.dns.messages import Answer, Question, make_question
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.dns.queries import Source
from dkimctl.names import parents

# An alias (CNAME) is in the answers to all of them.
_TYPES = (messages.A, messages.AAAA, messages.MX, messages.TXT, messages.HTTPS)
_RANDOM_BYTES = 4  # so that a name fits where one with _domainkey does
_MAX_AT_ONCE = 64  # questions, to the servers of many zones


class Records(NamedTuple):
    """The records of one type at a name; their data as in a master file, sorted."""

    rdtype: str
    ttl: int
    data: tuple[str, ...]


#: The zone of a name, the name, and the record type to ask for.
Query: TypeAlias = tuple[str, str, int]
#: Gives what is at the names, or their alias; None: nothing. Leaves out what was not answered.
Look: TypeAlias = Callable[[Iterable[Query]], Mapping[Query, Records | None]]
#: The records to add before a new one, as lines of a master file; None: it is not known.
AddFirst: TypeAlias = dict[str, tuple[str, ...] | None]


def find_shadowed(zone_of: Mapping[str, str], look: Look) -> AddFirst:
    """Those of these names whose new record would end what a wildcard answers for hosts above it.

    Names from one such as _domainkey on have nothing to lose: they are not hosts.
    """
    label = os.urandom(_RANDOM_BYTES).hex()

    def ask(zones: Mapping[str, str], prefix: str) -> dict[str, list[Records] | None]:
        """What each name with this prefix has; None: not a single question was answered."""
        asked = {
            name: [(zone, prefix + name, rdtype) for rdtype in _TYPES]
            for name, zone in zones.items()
        }
        answers = look([query for of_name in asked.values() for query in of_name])
        return {
            name: list(dict.fromkeys(filter(None, map(answers.get, of_name))))
            if any(query in answers for query in of_name)
            else None  # a server that fails at one type, such as HTTPS, has nothing of it
            for name, of_name in asked.items()
        }

    hosts_of = {name: _hosts(name, zone) for name, zone in zone_of.items()}
    zones = {host: zone_of[name] for name, hosts in hosts_of.items() for host in hosts}
    # What a random sibling of each host has, it has from a wildcard.
    of_siblings = ask({_above(host): zone for host, zone in zones.items()}, f"{label}.")
    wild = {host: zone for host, zone in zones.items() if of_siblings[_above(host)]}
    owns = ask(wild, "")
    # That wildcard does not answer below a host that exists, nor below a wildcard of the host.
    probes = ask(wild, f"{label}.*.")
    shadowed: AddFirst = {}
    for name, hosts in hosts_of.items():
        for number, host in enumerate(hosts):
            wildcard = of_siblings[_above(host)]
            answers = wildcard, owns.get(host, []), probes.get(host, [])
            if None in answers:
                shadowed[name] = None
                break
            # The data are not compared: some servers make them from the name, or at random.
            if all(answers):
                shadowed[name] = tuple(
                    f"{owner}. {ttl} IN {rdtype} {text}"
                    for each in hosts[number:]
                    for owner, found in ((each, owns.get(each)), (f"*.{each}", wildcard))
                    for rdtype, ttl, data in found or wildcard or ()
                    for text in data
                )
                break
    return shadowed


def _hosts(name: str, zone: str) -> Sequence[str]:
    """The names between the zone and this one, from the top, up to one such as _domainkey."""
    inner = [each for each in parents(_above(name)) if each.endswith(f".{zone}")]
    return list(takewhile(lambda each: not each.startswith("_"), reversed(inner)))


def _above(name: str) -> str:
    return name.partition(".")[2]


def question_of(query: Query) -> Question:
    return make_question(query[1], query[2])._replace(needs_message=True)


def records_in(answer: Answer, question: Question) -> Records | None:
    """What an answer has at the name itself."""
    for rrset in answer.message.answer if answer.message else ():
        rdtype = rrset.rdtype
        if rrset.name == question.name and rdtype in (RdataType.CNAME, question.rdtype):
            return Records(rdtype.name, rrset.ttl, tuple(sorted(map(str, rrset))))
    return None


def find_shadowed_in_dns(source: Source, zone_of: Mapping[str, str]) -> AddFirst:
    """The same, by what the servers of these zones answer; "": the zone is not known."""
    slots = asyncio.Semaphore(_MAX_AT_ONCE)

    async def answer(query: Query) -> tuple[Query, Records | None] | None:
        question = question_of(query)
        with contextlib.suppress(NoAnswer):
            async with slots:
                for server in (await source.zone(query[0])).servers:
                    found = (await queries.ask(source, server, question)).answer
                    if found is not None:
                        return query, records_in(found, question)
        return None

    async def answer_all(asked: Iterable[Query]) -> Mapping[Query, Records | None]:
        return dict(filter(None, await queries.gather(map(answer, asked))))

    with asyncio.Runner() as runner:
        known = {name: zone for name, zone in zone_of.items() if zone}
        return find_shadowed(known, lambda asked: runner.run(answer_all(asked)))
