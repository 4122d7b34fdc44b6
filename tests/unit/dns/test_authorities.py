"""The servers of zones, as the zones themselves and their delegations name them."""

from __future__ import annotations

import asyncio

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from dkimctl.dns.messages import decode, encode
from dkimctl.dns.nameserver import NoAnswer, Server
from dkimctl.dns.zones import ZoneServers

SOA = ["ns. root. 1 2 3 4 60"]
RECORDS = {
    ("example.com", "SOA"): SOA,
    ("example.com", "NS"): ["NS2.example.net.", "ns1.example.net."],
    ("ns1.example.net", "A"): ["192.0.2.1"],
    ("ns1.example.net", "AAAA"): ["2001:db8::1"],
    ("ns2.example.net", "A"): ["192.0.2.2", "192.0.2.3"],
}


@pytest.fixture
def find(resolver_with):
    """The servers of a zone, as (host, address), where DNS has these records."""

    def run(changes=(), zone="example.com"):
        zones = ZoneServers(resolver_with(RECORDS | dict(changes)), Server)
        result = asyncio.run(zones.zone(zone))
        assert result.name == zone
        return sorted(
            (", ".join(sorted(server.hosts)), getattr(server.responder, "address", ""))
            for server in result.servers
        )

    return run


def test_servers_have_all_their_addresses(find, resolver_with):
    assert find() == [
        ("ns1.example.net", "192.0.2.1"),
        ("ns1.example.net", "2001:db8::1"),
        ("ns2.example.net", "192.0.2.2"),
        ("ns2.example.net", "192.0.2.3"),
    ]


def test_address_of_two_hosts_is_one_server_with_both_names(find):
    assert find({("ns2.example.net", "A"): ["192.0.2.1"]}) == [
        ("ns1.example.net", "2001:db8::1"),
        ("ns1.example.net, ns2.example.net", "192.0.2.1"),
    ]


def test_server_has_no_ipv6_if_only_aaaa_fails(find):
    servers = find({("ns1.example.net", "AAAA"): NoAnswer("SERVFAIL")})
    assert [address for _, address in servers] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]


@pytest.mark.parametrize("zone", ["example.net", "example.org"])
def test_zone_without_servers_is_no_answer(find, zone):
    with pytest.raises(NoAnswer, match=f"no server with an address for the zone {zone}"):
        find({("example.net", "NS"): ["nowhere.example."]}, zone)


@pytest.mark.parametrize("key", [("ns2.example.net", "A"), ("ns3.example.net", "AAAA")])
def test_server_with_an_unknown_address_does_not_hide_the_others(find, key):
    names = ["ns1.example.net.", "ns2.example.net.", "ns3.example.net."]
    servers = find({("example.com", "NS"): names, key: NoAnswer("the resolver is silent")})
    silent = [label for label, address in servers if not address]
    assert silent == [key[0]]
    assert len(servers) > 1


def test_zone_is_looked_up_once_until_all_is_forgotten(resolver_with):
    async def work():
        resolver = resolver_with(RECORDS)
        zones = ZoneServers(resolver, Server)
        names = [f"s{number % 5}.example.com" for number in range(10)]
        before = await asyncio.gather(*map(zones.zone_with, names))
        assert {zone.name for zone in before} == {"example.com"}
        assert resolver.asked.count(("example.com", "NS")) == 1
        assert resolver.asked.count(("s0.example.com", "SOA")) == 1
        zones.forget()
        again = await zones.zone_with("example.com")
        assert resolver.asked.count(("example.com", "NS")) == 2
        assert resolver.asked.count(("ns1.example.net", "A")) == 2
        assert resolver.resets == 1
        assert set(again.servers) == set(before[0].servers)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("signed", "state"), [({}, (False, "")), ({"is_validated": True}, (True, "")),
                          ({"bogus": "expired"}, (False, "expired"))],
)  # fmt: skip
def test_zone_is_signed_if_the_resolver_says_so(resolver_with, signed, state):
    class Validating(resolver_with):
        async def ask(self, asked):
            answer = await super().ask(asked)
            return answer._replace(**signed) if str(asked) == "NS example.com" else answer

    zone = asyncio.run(ZoneServers(Validating(RECORDS), Server).zone("example.com"))
    assert (zone.is_secure, zone.bogus) == state


class NoSuchName:
    """A resolver that answers NXDOMAIN, from the zone com, for every name."""

    async def ask(self, asked):
        made = dns.message.make_response(dns.message.from_wire(encode(1, asked, recursion=True)))
        made.authority = [dns.rrset.from_text("com.", 60, "IN", "SOA", *SOA)]
        made.set_rcode(dns.rcode.NXDOMAIN)
        return decode(made.to_wire(), asked)


def test_name_without_a_zone_has_none():
    zones = ZoneServers(NoSuchName(), Server)
    assert asyncio.run(zones.zone_with("nowhere.com")) is None


def test_answer_without_an_soa_record_is_no_answer(resolver_with):
    zones = ZoneServers(resolver_with({}), Server)
    with pytest.raises(NoAnswer, match="no SOA record"):
        asyncio.run(zones.zone_with("nowhere.com"))


@pytest.mark.parametrize("name", [".", "com", "com."])
def test_root_and_top_level_domains_are_no_zones_of_keys(resolver_with, name):
    zones = ZoneServers(resolver_with(RECORDS), Server)
    assert asyncio.run(zones.zone_with(name)) is None
