"""The system's resolvers."""

from __future__ import annotations

import asyncio

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
from dns.edns import EDEOption

from dkimctl.addresses import Address, parse_address
from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.nameserver import NoAnswer, RecursiveResolver, system_nameservers


def test_system_nameservers_are_addresses():
    for address in system_nameservers():
        assert parse_address(str(address)) == address


ASKED = make_txt_question("s1._domainkey.example.com")


def ask_resolvers(*servers, questions=1):
    """The answer of resolvers at these name servers."""

    async def work():
        for server in servers:
            await server.__aenter__()
        resolver = RecursiveResolver([Address("127.0.0.1", server.port) for server in servers], 32)
        try:
            await resolver.prefetch([ASKED] * (questions > 1))
            return [await resolver.ask(ASKED) for _ in range(questions)][-1]
        finally:
            for server in servers:
                await server.__aexit__()

    return asyncio.run(work())


@pytest.mark.parametrize("questions", [1, 2])
def test_first_resolver_that_answers_is_enough(name_server, questions):
    first, second = name_server(), name_server()
    assert ask_resolvers(first, second, questions=questions).values == (b"v=DKIM1",)
    assert first.asked[0][2] & 1
    assert second.asked == []


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_next_resolver_is_asked_after_a_useless_answer(name_server, reply, rcode):
    first = name_server(lambda wire: [reply(wire, "", rcode=rcode)])
    assert ask_resolvers(first, name_server(), questions=2).values == (b"v=DKIM1",)


def servfail(wire, *options):
    made = dns.message.make_response(dns.message.from_wire(wire))
    made.set_rcode(dns.rcode.SERVFAIL)
    made.use_edns(options=options)
    return made.to_wire()


SIGNED = "example.com."
DS = dns.rrset.from_text(SIGNED, 60, "IN", "DS", "1 13 2 " + 64 * "0")


def unvalidated(reply, *options, rcode=dns.rcode.NOERROR, ds=(DS,), flags="AD"):
    """What a resolver answers that cannot validate: SERVFAIL, unless validation is off (CD).

    `ds` and `flags`: what it answers, when it is asked whether the zone has to be signed.
    """

    def respond(wire):
        asked = dns.message.from_wire(wire)
        if asked.question[0].to_text() == f"{SIGNED} IN DS":
            made = dns.message.make_response(asked)
            made.flags |= dns.flags.from_text(flags)
            made.answer = list(ds)
            return [made.to_wire()]
        return [reply(wire, rcode=rcode) if wire[3] & 0x10 else servfail(wire, *options)]

    return respond


def test_resolver_is_asked_to_tell_whether_it_validates(name_server, reply):
    for flags, is_validated in (("RA AD", True), ("RA", False)):
        there = name_server(lambda wire, flags=flags: [reply(wire, flags=flags)])
        answer = ask_resolvers(there, questions=2)
        assert (answer.is_validated, answer.bogus) == (is_validated, "")
        assert {wire[3] & 0x30 for wire in there.asked} == {0x20}


@pytest.mark.parametrize("questions", [1, 2])
def test_answer_without_validation_alone_is_bogus(name_server, reply, questions):
    there, other = name_server(unvalidated(reply)), name_server()
    answer = ask_resolvers(there, other, questions=questions)
    assert answer.values == (b"v=DKIM1",)
    assert answer.bogus == (
        "the resolver 127.0.0.1 cannot validate TXT s1._domainkey.example.com (DNSSEC)"
    )
    assert other.asked == []


@pytest.mark.parametrize(
    ("ds", "flags"),
    [((), "AD"), ((), "RA"), ((DS,), "RA")],
    ids=["not signed", "not signed, and not validated", "resolver does not validate"],
)
def test_failure_that_dnssec_cannot_have_caused_is_not_bogus(name_server, reply, ds, flags):
    answer = ask_resolvers(name_server(unvalidated(reply, ds=ds, flags=flags)))
    assert (answer.values, answer.bogus) == ((b"v=DKIM1",), "")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (EDEOption(7, "see s1._domainkey"), "EDE 7 (Signature Expired): see s1._domainkey"),
        (EDEOption(6), "EDE 6 (DNSSEC Bogus)"),
        (EDEOption(6, "\u202e"), "EDE 6 (DNSSEC Bogus): \\u202e"),
        (EDEOption(6, "x" * 900), "EDE 6 (DNSSEC Bogus): " + "x" * 178),
    ],
)
def test_bogus_answer_tells_the_extended_error(name_server, reply, option, text):
    answer = ask_resolvers(name_server(unvalidated(reply, option)))
    assert answer.bogus.endswith(f" (DNSSEC): {text}")


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_failure_without_validation_is_no_answer(name_server, reply, rcode):
    failing = name_server(unvalidated(reply, rcode=rcode))
    with pytest.raises(NoAnswer, match="it answers SERVFAIL"):
        ask_resolvers(failing)
    assert ask_resolvers(failing, name_server()).bogus == ""


def test_last_resolver_is_named_if_none_has_an_answer(name_server, reply):
    failing = name_server(lambda wire: [reply(wire, "", rcode=dns.rcode.SERVFAIL)])
    refusing = name_server(lambda wire: [reply(wire, "", rcode=dns.rcode.REFUSED)])
    with pytest.raises(NoAnswer, match=r"the resolver 127\.0\.0\.1: it answers REFUSED"):
        ask_resolvers(failing, refusing)


def test_no_resolver_at_all_is_no_answer():
    with pytest.raises(NoAnswer, match="no DNS resolver"):
        ask_resolvers()
