"""Where records belong, as far as DNS answers, and which provider has them."""

from __future__ import annotations

import asyncio
from collections import Counter

import dns.message
import dns.rrset
import pytest

from dkimctl.dns.messages import NS, SOA, decode, encode
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.errors import UsageError
from dkimctl.handoff.providers import (
    DnsPlace,
    Trouble,
    look_up_places,
    provider_of,
    provider_with,
    providers,
)

SERVERS = {
    "azure": ["ns1-03.azure-dns.com", "ns2-03.azure-dns.net", "ns4-03.azure-dns.info"],
    "cloudflare": ["ada.ns.cloudflare.com", "bob.ns.cloudflare.com"],
    "dnsimple": ["ns1.dnsimple.com", "ns2.dnsimple-edge.net", "ns4.dnsimple-edge.org"],
    "godaddy": ["ns07.domaincontrol.com", "ns08.domaincontrol.com"],
    "google": ["ns-cloud-b1.googledomains.com", "ns-cloud-b2.googledomains.com"],
    "ionos": ["ns1045.ui-dns.de", "ns1111.ui-dns.org", "ns1068.ui-dns.biz"],
    "linode": ["ns1.linode.com", "ns5.linode.com"],
    "namecheap": ["dns1.registrar-servers.com", "dns2.registrar-servers.com"],
    "ovh": ["dns19.ovh.net", "ns19.ovh.net"],
    "route53": ["ns-155.awsdns-22.com", "ns-1536.awsdns-08.co.uk", "ns-1352.awsdns-29.org"],
    "sakura": ["ns1.dns.ne.jp", "ns2.dns.ne.jp"],
}


def test_every_provider_is_tested():
    assert [provider.key for provider in providers()] == sorted(SERVERS)


@pytest.mark.parametrize("key", SERVERS)
def test_a_provider_is_told_by_its_name_servers(key):
    assert provider_of(SERVERS[key]) is provider_with(key)
    assert provider_with(key.upper()).key == key


@pytest.mark.parametrize(
    "names",
    [[], ["ns1.example.com"], ["ada.ns.cloudflare.com", "ns1.example.com"],
     ["ada.ns.cloudflare.com.example.com"], ["ada.ns.cloudflare.com\n"], ["xns1.dns.ne.jp"],
     ["nsxdns.ne.jp"]],
)  # fmt: skip
def test_other_servers_tell_nothing(names):
    assert provider_of(names) is None


def test_an_unknown_provider_is_a_usage_error():
    with pytest.raises(UsageError) as caught:
        provider_with("acme\x1b")
    assert caught.value.message == r'unknown provider "acme\x1b"'
    assert "cloudflare" in caught.value.hint


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
