"""Where records belong, as far as DNS answers, and which provider has them."""

from __future__ import annotations

import asyncio

import dns.message
import dns.rrset

from dkimctl.dns.messages import NS, SOA, decode, encode
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.handoff.providers import Trouble, look_up_places, provider_of, provider_with, providers

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


def test_each_provider_is_told_by_its_name_servers():
    assert {provider.key: provider_of(SERVERS[provider.key]) for provider in providers()} == {
        key: provider_with(key.upper()) for key in sorted(SERVERS)
    }
    for names in ([], ["ada.ns.cloudflare.com", "ns1.example.com"], ["xns1.dns.ne.jp"],
                  ["ada.ns.cloudflare.com.example.com"], ["ada.ns.cloudflare.com\n"]):  # fmt: skip
        assert provider_of(names) is None


NAME = "s1._domainkey.mail.example.com"


class Resolver:
    """Answers for the zones example.com and silent.example; of the latter, it gives no NS."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def ask(self, asked):
        self.asked.append(asked.rdtype)
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


def test_what_has_no_answer_does_not_stop_the_rest():
    resolver = Resolver()
    others = [f"s._domainkey.{zone}" for zone in ("broken.example", "silent.example", "x.invalid")]
    places = asyncio.run(look_up_places([NAME, NAME.replace("s1", "s2"), *others], resolver))
    broken, silent, none = (places[name] for name in others)
    assert places[NAME].zone == "example.com"
    assert resolver.asked.count(NS) == 2  # once for each zone
    assert (none.zone, none.trouble) == ("", Trouble.NO_ZONE)
    assert (broken.zone, broken.trouble) == ("", Trouble.NO_ANSWER)
    assert (silent.zone, silent.trouble) == ("silent.example", Trouble.NO_ANSWER)
    assert "SERVFAIL" in broken.reason
    assert "SERVFAIL" in silent.reason
