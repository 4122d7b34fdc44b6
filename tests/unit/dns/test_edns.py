"""Servers that cannot read EDNS are asked without it (RFC 6891), and this is remembered."""

from __future__ import annotations

import asyncio
import itertools

import dns.message
import dns.rcode
import pytest

from dkimctl.dns.messages import EDNS_REFUSALS, make_txt_question
from dkimctl.dns.nameserver import Server, Timeouts

MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(200)]
PATIENT = Timeouts(udp=(0.1, 0.1, 20), burst=0.3)
REFUSALS = sorted(EDNS_REFUSALS)


def uses_edns(wire: bytes) -> bool:
    return dns.message.from_wire(wire).edns >= 0


def run(there, use, **options):
    """What `use` returns for a server to ask."""

    async def work():
        async with there, asyncio.timeout(40):
            return await use(Server("127.0.0.1", there.port, timeouts=PATIENT, **options))

    return asyncio.run(work())


async def ask_one(server):
    return await server.ask(MANY[0])


@pytest.fixture
def refusing(name_server, reply):
    """A server that answers EDNS with an RCODE, in one of several ways."""

    def make(rcode, way="with EDNS"):
        def over_udp(wire):
            if not uses_edns(wire):
                return [reply(wire)]
            if way == "header":
                return [wire[:2] + (0x8000 | rcode).to_bytes(2) + bytes(8)]
            if way == "plain":
                asked = dns.message.from_wire(wire)
                asked.use_edns(False)
                wire = asked.to_wire()
            return [reply(wire, "", rcode=rcode)]

        return name_server(over_udp)

    return make


@pytest.mark.parametrize(
    ("rcode", "way"),
    [
        (dns.rcode.BADVERS, "with EDNS"),
        *itertools.product(REFUSALS[:-1], ["header", "plain", "with EDNS"]),
    ],
)
def test_refusal_of_edns_is_asked_again_without_it(refusing, rcode, way):
    there = refusing(rcode, way)
    assert run(there, ask_one).values == (b"v=DKIM1",)
    assert list(map(uses_edns, there.asked)) == [True, False]


@pytest.mark.parametrize("rcode", sorted(EDNS_REFUSALS - {dns.rcode.BADVERS}))
def test_refusal_with_and_without_edns_is_the_answer(name_server, reply, rcode):
    there = name_server(lambda wire: [reply(wire, "", rcode=rcode)])
    answer = run(there, ask_one)
    assert (answer.rcode, answer.message.edns) == (rcode, 0)  # which may say why
    assert list(map(uses_edns, there.asked)) == [True, False]


async def ask_twice(server):
    await server.prefetch(MANY)
    answers = [await server.ask(question) for question in MANY]
    await server.prefetch(MANY)
    return answers + [await server.ask(question) for question in MANY]


@pytest.mark.parametrize("rcode", REFUSALS)
def test_server_without_edns_is_remembered(refusing, rcode):
    there = refusing(rcode)
    answers = run(there, ask_twice, max_in_flight=8)
    assert {answer.values for answer in answers} == {(b"v=DKIM1",)}
    assert sum(map(uses_edns, there.asked)) == len(MANY) + 1


def test_server_that_drops_edns_is_asked_without_it_over_tcp_as_well(name_server, reply, stream):
    async def over_tcp(reader, writer):
        while True:
            wire = await stream.read(reader)
            if not uses_edns(wire):
                writer.write(stream.frame(reply(wire)))

    there = name_server(
        lambda wire: () if uses_edns(wire) else [reply(wire, "", flags="AA TC")], over_tcp
    )
    assert run(there, ask_one).values == (b"v=DKIM1",)


def test_lost_answers_do_not_end_the_use_of_edns(name_server, reply):
    there = name_server(lambda wire: () if uses_edns(wire) and lossy else [reply(wire)])

    async def use(server):
        nonlocal lossy
        await server.ask(MANY[0])
        lossy = True
        assert (await server.ask(MANY[1])).values == (b"v=DKIM1",)
        lossy = False
        await server.ask(MANY[2])

    lossy = False
    run(there, use)
    assert uses_edns(there.asked[-1])
