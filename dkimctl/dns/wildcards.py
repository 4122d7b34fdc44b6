"""What wildcards answer for names that a new record makes exist (RFC 4592 sections 2.2.2, 3.3.1).

With `s1._domainkey.shop.example.com`, the name `shop.example.com` exists: `*.example.com` answers
for it no longer, nor for what is below it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
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
_MAX_AT_ONCE = 64  # questions, to the servers of many zones


class Records(NamedTuple):
    """The records of one type at a name; their data as in a master file, sorted."""

    rdtype: str
    ttl: int
    data: tuple[str, ...]


#: Gives what names have, whose zones are given; leaves out, or has None for, what is not known.
Look: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, list[Records] | None]]
#: The records to add before a new one, as lines of a master file; None: it is not known.
AddFirst: TypeAlias = dict[str, tuple[str, ...] | None]


def find_shadowed(zone_of: Mapping[str, str], look: Look) -> AddFirst:
    """Those of these names whose new record would end what a wildcard answers for hosts above it.

    Names from one such as _domainkey on have nothing to lose: they are not hosts.
    """
    label = os.urandom(4).hex()  # shorter than _domainkey, so the names fit
    hosts_of = {name: _hosts(name, zone) for name, zone in zone_of.items()}
    zones = {host: zone_of[name] for name, hosts in hosts_of.items() for host in hosts}
    # What a random sibling of a host has, it has from a wildcard.
    sibling_of = {host: f"{label}.{host.partition('.')[2]}" for host in zones}
    siblings = look({sibling_of[host]: zone for host, zone in zones.items()})
    of_wildcard = {host: siblings.get(sibling_of[host]) for host in zones}
    wild = {host: zone for host, zone in zones.items() if of_wildcard[host]}
    # That wildcard does not answer below a host that exists, nor below a wildcard of the host.
    below = look({f"{label}.*.{host}": zone for host, zone in wild.items()})
    own = look({host: zone for host, zone in wild.items() if below.get(f"{label}.*.{host}")})
    shadowed: AddFirst = {}
    for name, hosts in hosts_of.items():
        for number, host in enumerate(hosts):
            wildcard, probe = of_wildcard[host], below.get(f"{label}.*.{host}")
            if [] in (wildcard, probe):
                continue
            answers = wildcard, probe, own.get(host)
            if None in answers:
                shadowed[name] = None
                break
            # The data are not compared: some servers make them from the name, or at random.
            if all(answers):
                shadowed[name] = tuple(
                    f"{owner}. {ttl} IN {rdtype} {text}"
                    for each in hosts[number:]
                    for owner, records in ((each, own.get(each)), (f"*.{each}", wildcard))
                    for rdtype, ttl, data in records or wildcard or ()
                    for text in data
                )
                break
    return shadowed


def _hosts(name: str, zone: str) -> Sequence[str]:
    """The names between the zone and this one, from the top, up to one such as _domainkey."""
    inner = [each for each in list(parents(name))[1:] if each.endswith(f".{zone}")]
    return list(takewhile(lambda each: not each.startswith("_"), reversed(inner)))


def questions_about(name: str) -> list[Question]:
    return [make_question(name, rdtype)._replace(needs_message=True) for rdtype in _TYPES]


def records_in(answers: Mapping[Question, Answer]) -> list[Records] | None:
    """What these answers have at the name itself; None: none of them is of use.

    A server that fails at one type, such as HTTPS, has nothing of it.
    """
    useful = {each: answer for each, answer in answers.items() if answer.rcode in messages.USEFUL}
    records = [
        Records(RdataType.to_text(rrset.rdtype), rrset.ttl, tuple(sorted(map(str, rrset))))
        for question, answer in useful.items()
        for rrset in (answer.message.answer if answer.message else ())
        if rrset.name == question.name and rrset.rdtype in (messages.CNAME, question.rdtype)
    ]
    return list(dict.fromkeys(records)) if useful else None


def find_shadowed_in_dns(source: Source, zone_of: Mapping[str, str]) -> AddFirst:
    """The same, by what the servers of these zones answer; "": the zone is not known."""
    slots = asyncio.Semaphore(_MAX_AT_ONCE)

    async def records_at(name: str, zone: str) -> list[Records] | None:
        answers: dict[Question, Answer] = {}
        with contextlib.suppress(NoAnswer):
            servers = (await source.zone(zone)).servers
            for question in questions_about(name):
                answer = None
                for server in servers:
                    async with slots:
                        answer = (await queries.ask(source, server, question)).answer
                    if answer is not None:
                        answers[question] = answer
                        break
                if answer is not None and answer.rcode == messages.NXDOMAIN:
                    break  # of any type
        return records_in(answers)

    async def look_all(zones: Mapping[str, str]) -> Mapping[str, list[Records] | None]:
        of_names = await queries.gather(records_at(name, zone) for name, zone in zones.items())
        return dict(zip(zones, of_names, strict=True))

    with asyncio.Runner() as runner:
        known = {name: zone for name, zone in zone_of.items() if zone}
        return find_shadowed(known, lambda zones: runner.run(look_all(zones)))
