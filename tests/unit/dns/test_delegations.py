"""The servers of the zone above name those of a zone, which are asked as well."""

from __future__ import annotations

import asyncio

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from dkimctl.dns.messages import decode, encode
from dkimctl.dns.nameserver import NoAnswer, NoRoute
from dkimctl.dns.zones import ZoneServers

SOA = ["ns. root. 1 2 3 4 60"]
RECORDS = {
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

    def reset_failures(self):
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
def find(resolver_with):
    """The labels of a zone's servers, where the servers of com answer this, by address."""

    def run(above, changes=(), zone="example.com"):
        servers = {address: Answering(answer) for address, answer in above.items()}
        zones = ZoneServers(
            resolver_with(RECORDS | dict(changes)),
            lambda address: servers.get(address) or Answering(SILENT),
        )
        result = asyncio.run(zones.zone(zone))
        return result, [server.label for server in result.servers]

    return run


BOTH = ["ns1.example.com (192.0.2.1)", "ns2.example.com (192.0.2.2)"]
GLUE = (("ns1.example.com", "192.0.2.1"), ("ns2.example.com", "192.0.2.2"))
AGREES = referral("ns1.example.com", "ns2.example.com", glue=GLUE)


def test_delegation_that_agrees_changes_nothing(find):
    zone, labels = find({A: AGREES, B: SILENT})
    assert (labels, zone.unknown_delegation) == (BOTH, "")


def test_old_server_in_the_delegation_is_asked(find):
    old = referral("ns1.example.com", "old.example.com", glue=[("old.example.com", "192.0.2.9")])
    assert find({A: old})[1] == [
        "ns1.example.com (192.0.2.1)",
        "ns2.example.com (192.0.2.2), only in the zone's own NS records",
        "old.example.com (192.0.2.9), only in the delegation",
    ]


def test_old_address_in_the_glue_is_asked(find):
    glue = [("ns1.example.com", "192.0.2.9"), ("ns1.example.com", "2001:db8::9"), GLUE[1]]
    old = referral("ns1.example.com", "ns2.example.com", glue=glue)
    assert find({A: old})[1] == [
        *BOTH,
        "ns1.example.com (192.0.2.9), only in the delegation",
        "ns1.example.com (2001:db8::9), only in the delegation",
    ]


def test_glue_of_a_host_outside_of_the_zone_above_is_not_believed(find):
    forged = referral("ns.other.test", glue=[("ns.other.test", "192.0.2.66")])
    assert find({A: forged})[1][-1] == "ns.other.test (192.0.2.3), only in the delegation"


def test_zone_whose_own_ns_records_have_no_address_is_found_by_its_delegation(find):
    _, labels = find({A: AGREES}, {("example.com", "NS"): ["nowhere.example.com."]})
    assert labels == [f"{label}, only in the delegation" for label in BOTH]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(SILENT, "it does not answer"), (refusal, "it answers REFUSED"),
     (from_cache, "it is not authoritative (lame)"), (denial, "it does not delegate the zone"),
     (referral("ns.test", zone="com"), "it is not authoritative (lame)"),
     (referral("ns.test", zone="other.com"), "it is not authoritative (lame)")],
)  # fmt: skip
def test_delegation_is_not_known_if_no_server_answers(find, answer, reason):
    zone, labels = find({A: NO_ROUTE, B: answer})
    assert labels == BOTH
    assert zone.unknown_delegation == (
        "the delegation of example.com is not known: "
        f"b.tld.test (192.0.2.102): NS example.com: {reason}"
    )


def test_only_three_silent_servers_are_waited_for(resolver_with):
    addresses = [f"192.0.2.{number}" for number in range(102, 110)]
    servers = {address: Answering(SILENT) for address in addresses}
    records = {("a.tld.test", "A"): ["192.0.2.101"], ("b.tld.test", "A"): addresses}
    zones = ZoneServers(
        resolver_with(RECORDS | records),
        lambda address: servers.get(address) or Answering(NO_ROUTE),
    )
    assert asyncio.run(zones.zone("example.com")).unknown_delegation
    assert sum(len(server.asked) for server in servers.values()) == 3
