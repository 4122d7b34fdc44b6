"""Who speaks for a zone, and what resolvers are asked for."""

from __future__ import annotations

import asyncio

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from dkimctl.resolver.messages import decode, encode
from dkimctl.resolver.server import NoAnswer, Server
from dkimctl.resolver.zones import ZoneServers


class Records:
    """A resolver that knows these, by (name, type); keeps what it was asked."""

    def __init__(self, records):
        self.records = records
        self.asked = []
        self.forgiven = 0

    async def ask(self, asked):
        kind = dns.rdatatype.to_text(asked.rdtype)
        key = asked.name.to_text(omit_final_dot=True).lower(), kind
        self.asked.append(key)
        await asyncio.sleep(0)
        found = self.records.get(key, [])
        if isinstance(found, Exception):
            raise found
        made = dns.message.make_response(dns.message.from_wire(encode(1, asked, recursion=True)))
        if found:
            class_, *data = found if found[0] == "HS" else ("IN", *found)
            made.answer = [dns.rrset.from_text(asked.name, 60, class_, kind, *data)]
        return decode(made.to_wire(), asked)

    def reset_failures(self):
        self.forgiven += 1


SOA = ["ns. root. 1 2 3 4 60"]
RECORDS = {
    ("example.com", "SOA"): SOA,
    ("example.com", "NS"): ["NS2.example.net.", "ns1.example.net."],
    ("ns1.example.net", "A"): ["192.0.2.1"],
    ("ns1.example.net", "AAAA"): ["2001:db8::1"],
    ("ns2.example.net", "A"): ["192.0.2.2", "192.0.2.3"],
}


def make_server(address: str, host: str) -> Server:
    return Server(address, host=host)


@pytest.fixture
def find():
    """The servers of a zone, as (host, address), where DNS has these records."""

    def run(changes=(), zone="example.com"):
        there = ZoneServers(Records(RECORDS | dict(changes)), make_server)
        found = asyncio.run(there.zone(zone))
        assert found.name == zone
        return sorted((server.host, getattr(server, "address", "")) for server in found.servers)

    return run


def test_all_addresses_of_all_servers_are_asked(find):
    assert find() == [
        ("ns1.example.net", "192.0.2.1"),
        ("ns1.example.net", "2001:db8::1"),
        ("ns2.example.net", "192.0.2.2"),
        ("ns2.example.net", "192.0.2.3"),
    ]


def test_an_address_of_two_names_is_one_server(find):
    servers = find({("ns2.example.net", "A"): ["192.0.2.1"]})
    assert [address for _, address in servers] == ["192.0.2.1", "2001:db8::1"]


def test_where_only_aaaa_goes_wrong_there_is_no_ipv6(find):
    servers = find({("ns1.example.net", "AAAA"): NoAnswer("SERVFAIL")})
    assert [address for _, address in servers] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]


@pytest.mark.parametrize(
    "records",
    [
        {("ns2.example.net", "A"): ["HS", r"\# 4 7f000001"]},
        {("ns2.example.net", "A"): [], ("ns2.example.net", "AAAA"): ["HS", r"\# 1 00"]},
    ],
)
def test_records_of_another_class_are_no_addresses(find, records):
    assert [host for host, _ in find(records)] == ["ns1.example.net"] * 2


def test_a_server_without_any_address_is_left_out(find):
    servers = find({("ns2.example.net", "A"): []})
    assert len(servers) == 2


@pytest.mark.parametrize("zone", ["example.net", "example.org"])
def test_a_zone_without_servers_is_no_answer(find, zone):
    with pytest.raises(NoAnswer, match=f"no server with an address for the zone {zone}"):
        find({("example.net", "NS"): ["nowhere.example."]}, zone)


def test_where_nobody_tells_the_servers_there_is_no_answer(find):
    with pytest.raises(NoAnswer, match="the resolver is silent"):
        find({("example.com", "NS"): NoAnswer("the resolver is silent")})


@pytest.mark.parametrize("key", [("ns2.example.net", "A"), ("ns3.example.net", "AAAA")])
def test_a_server_whose_address_nobody_tells_is_silent_and_the_others_are_not(find, key):
    names = ["ns1.example.net.", "ns2.example.net.", "ns3.example.net."]
    servers = find({("example.com", "NS"): names, key: NoAnswer("the resolver is silent")})
    silent = [label for label, address in servers if not address]
    assert silent == [key[0]]
    assert len(servers) > 1


class Forgiven:
    def __init__(self, address, forgiven):
        self.reset_failures = lambda: forgiven.append(address)


def test_servers_that_were_silent_are_asked_again_when_all_is_forgotten():
    forgiven = []

    async def work():
        there = ZoneServers(
            Records(RECORDS),
            lambda address, host: Forgiven(address, forgiven),
        )
        await there.zone("example.com")
        there.forget()

    asyncio.run(work())
    assert sorted(forgiven) == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"]


def test_a_zone_is_looked_up_once_until_all_is_forgotten():
    async def work():
        resolver = Records(RECORDS)
        there = ZoneServers(resolver, make_server)
        names = [f"s{number}.example.com" for number in range(5)]
        zones = await asyncio.gather(*map(there.zone_with, names))
        assert {zone.name for zone in zones} == {"example.com"}
        assert resolver.asked.count(("example.com", "NS")) == 1
        there.forget()
        again = await there.zone_with("example.com")
        assert resolver.asked.count(("example.com", "NS")) == 2
        assert resolver.asked.count(("ns1.example.net", "A")) == 2
        assert resolver.forgiven == 1
        assert set(again.servers) == set(zones[0].servers)

    asyncio.run(work())


class NoSuchName:
    """A resolver that says of each name that the zone com has none of it."""

    async def ask(self, asked):
        made = dns.message.make_response(dns.message.from_wire(encode(1, asked, recursion=True)))
        made.authority = [dns.rrset.from_text("com.", 60, "IN", "SOA", *SOA)]
        made.set_rcode(dns.rcode.NXDOMAIN)
        return decode(made.to_wire(), asked)


def test_a_name_in_no_zone_has_none():
    there = ZoneServers(NoSuchName(), make_server)
    assert asyncio.run(there.zone_with("nowhere.com")) is None


def test_a_resolver_that_tells_of_no_zone_at_all_is_not_taken_to_deny_it():
    there = ZoneServers(Records({}), make_server)
    with pytest.raises(NoAnswer, match="no SOA record"):
        asyncio.run(there.zone_with("nowhere.com"))
