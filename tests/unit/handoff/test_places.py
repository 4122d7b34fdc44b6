"""The zone of a record and its name servers, as far as DNS answers."""

from __future__ import annotations

import asyncio
from collections import Counter

import dns.message
import dns.rrset

from dkimctl.dns.messages import NS, SOA, decode, encode
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.handoff.providers import DnsPlace, Trouble, look_up_places

NAME = "s1._domainkey.mail.example.com"


class Resolver:
    """Answers for the zones example.com and silent.example; of the latter, it gives no NS."""

    def __init__(self) -> None:
        self.asked = Counter()

    async def ask(self, asked):
        self.asked[asked.rdtype] += 1
        name = asked.name.to_text()
        if name.endswith("broken.example.") or (
            asked.rdtype == NS and name.endswith("silent.example.")
        ):
            raise NoAnswer("SERVFAIL")
        response = dns.message.make_response(
            dns.message.from_wire(encode(1, asked, recursion=True))
        )
        zone = next(
            (each for each in ("example.com.", "silent.example.") if name.endswith(each)), "."
        )
        if asked.rdtype == NS:
            servers = ("NS.b.example.", "ns.a.example.")
            response.answer = [dns.rrset.from_text(name, 60, "IN", "NS", *servers)]
        else:
            assert asked.rdtype == SOA
            soa = dns.rrset.from_text(zone, 60, "IN", "SOA", "ns. root. 1 2 3 4 60")
            response.authority = [soa]
        return decode(response.to_wire(), asked)


def look_up(*names: str, resolver: Resolver | None = None) -> dict[str, DnsPlace]:
    return asyncio.run(look_up_places(names, resolver or Resolver()))


def test_the_servers_of_a_zone_are_asked_for_once():
    resolver = Resolver()
    names = [f"s{number}._domainkey.example.com" for number in range(9)]
    places = look_up(*names, resolver=resolver)
    assert {place.zone for place in places.values()} == {"example.com"}
    assert resolver.asked[NS] == 1


def test_what_has_no_answer_does_not_stop_the_rest():
    places = look_up(NAME, "s._domainkey.broken.example", "s._domainkey.silent.example")
    broken, silent = places["s._domainkey.broken.example"], places["s._domainkey.silent.example"]
    assert places[NAME].zone == "example.com"
    assert (broken.zone, broken.trouble) == ("", Trouble.NO_ANSWER)
    assert (silent.zone, silent.trouble) == ("silent.example", Trouble.NO_ANSWER)
    assert "SERVFAIL" in broken.reason
    assert "SERVFAIL" in silent.reason


def test_no_zone_is_different_from_no_answer():
    [place] = look_up("s._domainkey.typo.invalid").values()
    assert (place.zone, place.trouble) == ("", Trouble.NO_ZONE)
