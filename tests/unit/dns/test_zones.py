"""The servers of zones, as the zones themselves and their delegations name them."""

from __future__ import annotations

import asyncio

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from dkimctl.dns.messages import decode, encode
from dkimctl.dns.nameserver import ErrorAnswer, NoAnswer, NoRoute, Server
from dkimctl.dns.zones import ZoneServers
from fake_dns import Resolver

SOA = ["ns. root. 1 2 3 4 60"]
RECORDS = {
    ("example.com", "SOA"): SOA,
    ("example.com", "NS"): ["NS2.example.net.", "ns1.example.net."],
    ("ns1.example.net", "A"): ["192.0.2.1"],
    ("ns1.example.net", "AAAA"): ["2001:db8::1"],
    ("ns2.example.net", "A"): ["192.0.2.2", "192.0.2.3"],
}


@pytest.fixture
def find():
    """The servers of a zone, as (host, address), where DNS has these records."""

    def run(changes=(), zone="example.com"):
        zones = ZoneServers(Resolver(RECORDS | dict(changes)), Server)
        result = asyncio.run(zones.zone(zone))
        assert result.name == zone
        return sorted(
            (", ".join(sorted(server.hosts)), getattr(server.responder, "address", ""))
            for server in result.servers
        )

    return run


def test_server_has_no_ipv6_if_only_aaaa_fails(find):
    servers = find({("ns1.example.net", "AAAA"): NoAnswer("SERVFAIL")})
    assert [address for _, address in servers] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]


def test_records_of_another_class_are_no_addresses(find):
    servers = find({("ns1.example.net", "AAAA"): ["HS", r"\# 4 c0000263"]})
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


def test_zone_is_looked_up_once_until_all_is_forgotten():
    async def work():
        resolver = Resolver(RECORDS)
        zones = ZoneServers(resolver, Server)
        names = [f"s{number % 5}.example.com" for number in range(10)]
        before = await asyncio.gather(*map(zones.zone_with, names))
        assert {zone.name for zone in before} == {"example.com"}
        assert resolver.asked.count(("example.com", "NS")) == 1
        assert resolver.asked.count(("s0.example.com", "SOA")) == 1
        for server in before[0].servers:
            server.responder._failures = 8
        zones.forget()
        assert {server.responder._failures for server in before[0].servers} == {0}
        again = await zones.zone_with("example.com")
        assert resolver.asked.count(("example.com", "NS")) == 2
        assert resolver.asked.count(("ns1.example.net", "A")) == 2
        assert resolver.resets == 1
        assert set(again.servers) == set(before[0].servers)

    asyncio.run(work())


def test_answer_without_an_soa_record_is_no_answer():
    zones = ZoneServers(Resolver({}), Server)
    with pytest.raises(NoAnswer, match="finds no zone for this name"):
        asyncio.run(zones.zone_with("nowhere.com"))


@pytest.mark.parametrize("name", [".", "com", "com."])
def test_root_and_top_level_domains_are_no_zones_of_keys(name):
    zones = ZoneServers(Resolver(RECORDS), Server)
    assert asyncio.run(zones.zone_with(name)) is None


DELEGATIONS_RECORDS = {
    ("com", "SOA"): SOA,
    ("com", "NS"): ["a.tld.test.", "b.tld.test."],
    ("a.tld.test", "A"): ["192.0.2.101"],
    ("b.tld.test", "A"): ["192.0.2.102"],
    ("example.com", "SOA"): SOA,
    ("example.com", "NS"): ["ns1.example.com.", "ns2.example.com."],
    ("ns1.example.com", "A"): ["192.0.2.1"],
    ("ns2.example.com", "A"): ["192.0.2.2"],
    ("ns.other.test", "A"): ["192.0.2.3"],
}
A, B = "192.0.2.101", "192.0.2.102"  # of com
SILENT = NoAnswer("it does not answer")
NO_ROUTE = NoRoute("there is no route to it")


class Answering:
    """A server that makes the same answer for each question; keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def ask(self, asked):
        self.asked.append(str(asked))
        if isinstance(self.answer, Exception):
            raise self.answer
        made = dns.message.make_response(dns.message.from_wire(encode(1, asked, recursion=False)))
        self.answer(made)
        return decode(made.to_wire(), asked)

    def reset(self):
        """Nothing is held against it."""


def referral(*hosts, zone="example.com", glue=()):
    """What a server of the zone above answers; `glue` has (host, address) pairs."""

    def make(made):
        made.authority = [
            dns.rrset.from_text(f"{zone}.", 60, "IN", "NS", *(f"{host}." for host in hosts))
        ]
        made.additional = [
            dns.rrset.from_text(f"{host}.", 60, "IN", "AAAA" if ":" in address else "A", address)
            for host, address in glue
        ]

    return make


def denial(made):
    made.flags |= dns.flags.AA
    made.set_rcode(dns.rcode.NXDOMAIN)
    made.authority = [dns.rrset.from_text("com.", 60, "IN", "SOA", *SOA)]


def refusal(made):
    made.set_rcode(dns.rcode.REFUSED)


def from_cache(made):
    made.flags |= dns.flags.RA
    made.answer = [dns.rrset.from_text("example.com.", 60, "IN", "NS", "ns9.example.com.")]


@pytest.fixture
def find_delegated():
    """The labels of a zone's servers, where the servers of com answer this, by address."""

    def run(above, changes=(), zone="example.com"):
        servers = {address: Answering(answer) for address, answer in above.items()}
        zones = ZoneServers(
            Resolver(DELEGATIONS_RECORDS | dict(changes)),
            lambda address: servers.get(address) or Answering(SILENT),
        )
        result = asyncio.run(zones.zone(zone))
        return result, [server.label for server in result.servers]

    return run


BOTH = ["ns1.example.com (192.0.2.1)", "ns2.example.com (192.0.2.2)"]


def test_old_server_in_the_delegation_is_asked(find_delegated):
    old = referral("ns1.example.com", "old.example.com", glue=[("old.example.com", "192.0.2.9")])
    assert find_delegated({A: old})[1] == [
        "ns1.example.com (192.0.2.1)",
        "ns2.example.com (192.0.2.2), only in the zone's own NS records",
        "old.example.com (192.0.2.9), only in the delegation",
    ]


def test_glue_of_a_host_outside_of_the_zone_above_is_not_believed(find_delegated):
    forged = referral("ns.other.test", glue=[("ns.other.test", "192.0.2.66")])
    assert find_delegated({A: forged})[1][-1] == "ns.other.test (192.0.2.3), only in the delegation"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(SILENT, "it does not answer"), (refusal, "it answers REFUSED"),
     (from_cache, "it is not authoritative (lame)"), (denial, "it does not delegate the zone"),
     (referral("ns.test", zone="com"), "it is not authoritative (lame)"),
     (referral("ns.test", zone="other.com"), "it is not authoritative (lame)")],
)  # fmt: skip
def test_delegation_is_not_known_if_no_server_answers(find_delegated, answer, reason):
    zone, labels = find_delegated({A: NO_ROUTE, B: answer})
    assert labels == BOTH
    assert zone.unknown_delegation == (
        "the delegation of example.com is not known: "
        f"b.tld.test (192.0.2.102): NS example.com: {reason}"
    )


NAMED = referral("ns1.example.com", "ns2.example.com")


def copy_of_the_zone(made):
    made.flags |= dns.flags.AA
    made.answer = [dns.rrset.from_text("example.com.", 60, "IN", "NS", "old.example.com.")]


@pytest.mark.parametrize(
    ("answer", "more"),
    [(NAMED, []), (SILENT, []), (refusal, []), (from_cache, []),
     (denial, ["b.tld.test (192.0.2.102), a server of the zone above"]),
     (copy_of_the_zone, ["old.example.com (192.0.2.9), only named by b.tld.test (192.0.2.102)",
                         "b.tld.test (192.0.2.102), a server of the zone above"]),
     (referral("ns1.example.com", "old.example.com"),
      ["old.example.com (192.0.2.9), only named by b.tld.test (192.0.2.102)"])],
)  # fmt: skip
def test_what_any_server_above_answers_counts(find_delegated, answer, more):
    changes = {("old.example.com", "A"): ["192.0.2.9"]}
    zone, labels = find_delegated({A: NAMED, B: answer}, changes)
    assert (zone.unknown_delegation, labels) == ("", BOTH + more)
    assert find_delegated({A: answer, B: NAMED}, changes)[1][2:] == [
        label.replace("b.tld.test (192.0.2.102)", "a.tld.test (192.0.2.101)") for label in more
    ]


@pytest.mark.parametrize("upwards", ["com", "example.com"])
def test_a_zone_below_is_found_although_a_server_refers_upwards(upwards):
    lame = referral("ns.test", zone=upwards)
    answers = {"192.0.2.1": lame, "192.0.2.2": referral("ns1.example.com", zone="shop.example.com")}
    records = DELEGATIONS_RECORDS | {("shop.example.com", "SOA"): ErrorAnswer("SERVFAIL")}

    def find():
        zones = ZoneServers(Resolver(records), lambda address: Answering(answers[address]))
        return asyncio.run(zones.zone_with("shop.example.com"))

    assert find().name == "shop.example.com"
    answers["192.0.2.2"] = lame
    with pytest.raises(NoAnswer, match=r"^no server of example\.com knows shop\.example\.com$"):
        find()


class Counting(Answering):
    """Keeps how many of its kind are asked at the same time, at most."""

    now = most = 0

    async def ask(self, asked):
        Counting.now += 1
        Counting.most = max(Counting.most, Counting.now)
        await asyncio.sleep(0.001)
        Counting.now -= 1
        return await super().ask(asked)


@pytest.mark.parametrize("names", [["example.com"], [f"s{n}.example.com" for n in range(8)]])
def test_few_servers_above_are_asked_at_the_same_time(monkeypatch, names):
    monkeypatch.setattr("dkimctl.dns.zones._MAX_BURSTS", 2)
    addresses = [f"192.0.2.{number}" for number in range(101, 109)]
    failing = {(f"s{number}.example.com", "SOA"): ErrorAnswer("SERVFAIL") for number in range(8)}
    records = DELEGATIONS_RECORDS | failing | {("a.tld.test", "A"): addresses}
    zones = ZoneServers(Resolver(records), lambda address: Counting(NAMED))

    async def find_all():
        await asyncio.gather(*map(zones.zone_with, names), return_exceptions=True)

    for _ in range(2):  # each in an event loop of its own
        Counting.most = 0
        zones.forget()
        asyncio.run(find_all())
        assert Counting.most == 2


def test_few_silent_servers_are_asked_for_a_name_without_an_soa_record():
    addresses = [f"192.0.2.{number}" for number in range(1, 9)]
    records = DELEGATIONS_RECORDS | {("shop.example.com", "SOA"): ErrorAnswer("SERVFAIL"),
                                     ("ns1.example.com", "A"): addresses}  # fmt: skip
    silent = Answering(SILENT)
    zones = ZoneServers(Resolver(records), lambda address: silent)
    with pytest.raises(NoAnswer, match=str(SILENT)):
        asyncio.run(zones.zone_with("shop.example.com"))
    assert silent.asked == ["NS shop.example.com"] * 3


def test_a_zone_whose_ns_records_the_resolver_does_not_give_may_be_secure(find_delegated):
    changes = {("example.com", "NS"): ErrorAnswer("SERVFAIL")}
    zone, labels = find_delegated({A: NAMED}, changes)
    assert (zone.is_secure, labels) == (
        True,
        [f"{label}, only in the delegation" for label in BOTH],
    )
