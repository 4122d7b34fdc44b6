"""Asking one DNS server: in parallel, over UDP and TCP, again after failures."""

from __future__ import annotations

import asyncio
import contextlib
import time

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
from dns.edns import EDEOption, GenericOption

from dkimctl.addresses import Address
from dkimctl.dns import nameserver, queries
from dkimctl.dns.messages import DNSSEC_OK, EDNS_REFUSALS, encode, make_txt_question
from dkimctl.dns.nameserver import NoAnswer, RecursiveResolver, Server, Timeouts
from dkimctl.dns.zones import Zone
from fake_dns import NameServer, frame, make_reply, read_query

ASKED = make_txt_question("s1._domainkey.example.com")
MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(20)]
REFUSED = dns.rcode.REFUSED
QUICK = Timeouts(udp=(0.1, 0.1, 0.1), tcp=0.5, burst=0.3)


def silent(wire):
    return ()


@contextlib.asynccontextmanager
async def asking(there, **options):
    """A server to ask, at a name server that runs meanwhile."""
    async with there:
        yield Server(there.host, there.port, **options)


async def ask_each(there, questions=(ASKED,), **options):
    """The answer or error of each question, asked at the same time."""
    async with asking(there, **options) as server:
        return await asyncio.gather(*map(server.ask, questions), return_exceptions=True)


def ask(there, **options):
    (answer,) = asyncio.run(ask_each(there, **options))
    return answer


@pytest.fixture(scope="session")
def truncated():
    return lambda wire: [make_reply(wire, "", flags="AA TC")]


def forged(wire):
    """Answers that are none to this question, or under another number."""
    other = encode(int.from_bytes(wire[:2]), MANY[5], recursion=False)
    return [
        b"",
        wire[:2],
        wire,
        make_reply(wire, "forged")[:-20],
        bytes([wire[0] ^ 1]) + make_reply(wire, "forged")[1:],
        make_reply(other, "forged"),
        wire[:2] + b"\x84\0" + bytes(8),
    ]


@pytest.mark.parametrize("in_burst", [False, True])
def test_forged_and_repeated_answers_are_ignored(in_burst):
    there = NameServer(lambda wire: [*forged(wire), make_reply(wire), make_reply(wire, "late")])

    async def work():
        async with asking(there) as server:
            await server.prefetch([ASKED] * in_burst)
            return await server.ask(ASKED)

    assert asyncio.run(work()).values == (b"v=DKIM1",)
    assert len(there.asked) == 1


def test_other_datagrams_do_not_extend_the_wait_of_a_burst():
    class Babbling(NameServer):
        def _answer(self, data, addr):
            self._udp.sendto(b"nothing that was asked", addr)
            asyncio.get_running_loop().call_later(0.1, self._answer, data, addr)

    async def work():
        async with asking(Babbling(), timeouts=QUICK) as server, asyncio.timeout(10):
            await server.prefetch([ASKED])

    asyncio.run(work())


def test_a_flood_of_forged_answers_does_not_extend_the_wait(monkeypatch):
    end = time.monotonic() + 10

    async def at_once(loop, channel, size):
        assert time.monotonic() < end
        return b"\0\0 forged"

    monkeypatch.setattr("dkimctl.dns.messages.random_id", lambda: 0)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_recv", at_once)
    assert str(ask(NameServer(), timeouts=QUICK)) == "nothing answers at that address and port"


class Slow(NameServer):
    """Keeps how many questions were in flight at the same time, at most."""

    def __init__(self) -> None:
        super().__init__()
        self.in_flight = self.most = 0

    def _answer(self, data, addr):
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        asyncio.get_running_loop().call_later(0.02, self._answer_late, data, addr)

    def _answer_late(self, data, addr):
        self.in_flight -= 1
        super()._answer(data, addr)


@pytest.mark.parametrize("in_burst", [False, True])
@pytest.mark.parametrize("number", [1, 3, 64])
def test_no_more_questions_than_allowed_are_in_flight(number, in_burst):
    server = Server("127.0.0.1", max_in_flight=number)

    async def work(there):
        async with there:
            server._address = Address("127.0.0.1", there.port)
            await server.prefetch(MANY * in_burst)
            return await asyncio.gather(*map(server.ask, MANY))

    for _ in range(2):  # each in an event loop of its own
        there = Slow()
        answers = asyncio.run(work(there))
        assert {answer.values for answer in answers} == {(b"v=DKIM1",)}
        assert there.most == min(number, len(MANY))


def test_closed_port_is_no_answer_at_once_and_tried_again_after_a_reset():
    async def free_port():
        async with NameServer() as there:
            return there.port

    async def ask_all():
        async with asyncio.timeout(5):
            return await asyncio.gather(*map(server.ask, MANY[:9]), return_exceptions=True)

    server = Server("127.0.0.1", asyncio.run(free_port()))
    for _ in range(2):  # each in an event loop of its own
        *errors, last = asyncio.run(ask_all())
        assert {str(error) for error in errors} == {"nothing answers at that address and port"}
        assert str(last) == "it has not answered 8 questions in a row"
        server.reset()


@pytest.mark.parametrize("needs_udp", [True, False])
def test_only_a_resolver_is_believed_that_answers_only_over_tcp(over_tcp, needs_udp):
    there = NameServer(silent, over_tcp())
    options = {"max_in_flight": 8, "timeouts": QUICK, "needs_udp": needs_udp}
    answers = asyncio.run(ask_each(there, MANY, **options))
    expected = "it answers over TCP, but not over UDP, which resolvers need"
    assert {str(answer) if needs_udp else answer.values for answer in answers} == {
        expected if needs_udp else (b"over TCP",)
    }
    assert 8 <= len({wire[:2] for wire in there.asked}) < 16  # then it is not asked over UDP


def test_a_slow_connection_times_out(truncated):
    async def drip(reader, writer):
        writer.write(b"\xff\xff")
        while not writer.is_closing():
            writer.write(b"\0")
            await writer.drain()
            await asyncio.sleep(0.1)

    answer = ask(NameServer(truncated, drip), timeouts=QUICK)
    assert str(answer) == "its answer over UDP is truncated; over TCP, it does not answer"


@pytest.mark.parametrize(
    "change",
    [
        lambda wire: make_reply(wire)[:-20],
        lambda wire: make_reply(wire, "", flags="AA TC"),
        lambda wire: make_reply(encode(int.from_bytes(wire[:2]), MANY[5], recursion=False)),
    ],
    ids=["cut", "truncated", "to another question"],
)
def test_unreadable_answer_over_tcp_is_no_answer(truncated, change):
    async def over_tcp(reader, writer):
        wire = await read_query(reader)
        stray = bytes([wire[0] ^ 1]) + make_reply(wire, "forged")[1:]
        writer.write(frame(stray) + frame(change(wire)))

    answer = ask(NameServer(truncated, over_tcp))
    assert str(answer) == ("its answer over UDP is truncated; over TCP, its answer cannot be read")


def test_silent_server_is_given_up_until_it_answers_a_burst():
    there = NameServer(silent)

    async def work():
        async with asking(there, timeouts=QUICK, max_in_flight=len(MANY)) as server:
            await asyncio.gather(*map(server.ask, MANY), return_exceptions=True)
            with pytest.raises(NoAnswer, match=r"^it has not answered \d+ questions in a row$"):
                await server.ask(ASKED)
            there.over_udp = lambda wire: [make_reply(wire)]
            await server.prefetch([ASKED])
            return [await server.ask(ASKED), await server.ask(MANY[0])]

    assert {answer.values for answer in asyncio.run(work())} == {(b"v=DKIM1",)}


EDNS_MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(200)]
PATIENT = Timeouts(udp=(0.1, 0.1, 20), burst=0.3)
REFUSALS = sorted(EDNS_REFUSALS)
WAYS = ("header", "plain")


def uses_edns(wire: bytes) -> bool:
    return dns.message.from_wire(wire).edns >= 0


def run(there, use, **options):
    """What `use` returns for a server to ask."""

    async def work():
        async with there, asyncio.timeout(40):
            return await use(Server("127.0.0.1", there.port, timeouts=PATIENT, **options))

    return asyncio.run(work())


async def ask_one(server):
    return await server.ask(EDNS_MANY[0])


@pytest.fixture
def refusing():
    """A server that answers EDNS with an RCODE, in one of several ways."""

    def make(rcode, way="with EDNS"):
        def over_udp(wire):
            if not uses_edns(wire):
                return [make_reply(wire)]
            if way == "header":
                return [wire[:2] + (0x8000 | rcode).to_bytes(2) + bytes(8)]
            if way == "plain":
                asked = dns.message.from_wire(wire)
                asked.use_edns(False)
                wire = asked.to_wire()
            return [make_reply(wire, "", rcode=rcode)]

        return NameServer(over_udp)

    return make


@pytest.mark.parametrize(
    ("rcode", "way"),
    [
        *((rcode, "with EDNS") for rcode in REFUSALS),
        (REFUSALS[0], "header"),
        (REFUSALS[0], "plain"),
    ],
)
def test_refusal_of_edns_is_asked_again_without_it(refusing, rcode, way):
    there = refusing(rcode, way)
    assert run(there, ask_one).values == (b"v=DKIM1",)
    assert list(map(uses_edns, there.asked)) == [True, False]


@pytest.mark.parametrize("rcode", sorted(EDNS_REFUSALS - {dns.rcode.BADVERS}))
def test_refusal_with_and_without_edns_is_the_answer(rcode):
    there = NameServer(lambda wire: [make_reply(wire, "", rcode=rcode)])
    assert run(there, ask_one).rcode == rcode
    assert list(map(uses_edns, there.asked)) == [True, False]


def test_server_that_drops_edns_is_asked_without_it_from_then_on(truncated, over_tcp):
    over_edns = []
    there = NameServer(
        lambda wire: () if uses_edns(wire) else truncated(wire),
        over_tcp(before=lambda wire: over_edns.append(uses_edns(wire)) or ()),
    )

    async def work():
        async with asking(there, timeouts=QUICK) as server:
            return [await server.ask(question) for question in MANY[:2]]

    assert {answer.values for answer in asyncio.run(work())} == {(b"over TCP",)}
    assert list(map(uses_edns, there.asked)) == [True, True, False, True, True, False]
    assert over_edns == [False, False]
    there = NameServer(lambda wire: () if uses_edns(wire) else [make_reply(wire)])
    asyncio.run(work())
    assert list(map(uses_edns, there.asked)) == [True, True, False, False]


def test_lost_answers_do_not_end_the_use_of_edns():
    there = NameServer(lambda wire: () if len(there.asked) in (2, 3) else [make_reply(wire)])

    async def work():
        async with asking(there, timeouts=QUICK) as server:
            return [await server.ask(question) for question in MANY[:3]]

    assert {answer.values for answer in asyncio.run(work())} == {(b"v=DKIM1",)}
    assert list(map(uses_edns, there.asked)) == [True, True, True, False, True]


async def ask_twice(server):
    await server.prefetch(EDNS_MANY)
    answers = [await server.ask(question) for question in EDNS_MANY]
    await server.prefetch(EDNS_MANY)
    return answers + [await server.ask(question) for question in EDNS_MANY]


def test_server_without_edns_is_remembered(refusing):
    there = refusing(REFUSALS[0])
    answers = run(there, ask_twice, max_in_flight=8)
    assert {answer.values for answer in answers} == {(b"v=DKIM1",)}
    assert sum(map(uses_edns, there.asked)) == len(EDNS_MANY) + 1


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
def test_first_resolver_that_answers_is_enough(questions):
    first, second = NameServer(), NameServer()
    assert ask_resolvers(first, second, questions=questions).values == (b"v=DKIM1",)
    assert first.asked[0][2] & 1
    assert second.asked == []


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_next_resolver_is_asked_after_a_useless_answer(rcode):
    first = NameServer(lambda wire: [make_reply(wire, "", rcode=rcode)])
    assert ask_resolvers(first, NameServer(), questions=2).values == (b"v=DKIM1",)
    with pytest.raises(NoAnswer, match=rf"^the resolver 127\.0\.0\.1: it answers {rcode.name}$"):
        ask_resolvers(first)


def servfail(wire, *options):
    made = dns.message.make_response(dns.message.from_wire(wire))
    made.set_rcode(dns.rcode.SERVFAIL)
    made.use_edns(options=options)
    return made.to_wire()


SIGNED = "example.com."
DS = dns.rrset.from_text(SIGNED, 60, "IN", "DS", "1 13 2 " + 64 * "0")


def unvalidated(*options, rcode=dns.rcode.NOERROR, ds=(DS,), flags="AD"):
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
        return [make_reply(wire, rcode=rcode) if wire[3] & 0x10 else servfail(wire, *options)]

    return respond


def test_resolver_is_asked_to_tell_whether_it_validates():
    for flags, is_validated in (("RA AD", True), ("RA", False)):
        there = NameServer(lambda wire, flags=flags: [make_reply(wire, flags=flags)])
        answer = ask_resolvers(there, questions=2)
        assert (answer.is_validated, answer.bogus) == (is_validated, "")
        assert {wire[3] & 0x30 for wire in there.asked} == {0x20}


@pytest.mark.parametrize("questions", [1, 2])
def test_answer_without_validation_alone_is_bogus(questions):
    there, other = NameServer(unvalidated()), NameServer()
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
def test_failure_that_dnssec_cannot_have_caused_is_not_bogus(ds, flags):
    answer = ask_resolvers(NameServer(unvalidated(ds=ds, flags=flags)))
    assert (answer.values, answer.bogus) == ((b"v=DKIM1",), "")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (EDEOption(7, "see s1._domainkey"), "EDE 7 (Signature Expired): see s1._domainkey"),
        (EDEOption(6, "\u202e"), "EDE 6 (DNSSEC Bogus): \\u202e"),
        (EDEOption(6, "x" * 900), "EDE 6 (DNSSEC Bogus): " + "x" * 178),
    ],
)
def test_bogus_answer_tells_the_extended_error(option, text):
    answer = ask_resolvers(NameServer(unvalidated(option)))
    assert answer.bogus.endswith(f" (DNSSEC): {text}")


WITH_DO = [asked._replace(flags=DNSSEC_OK) for asked in MANY]


@pytest.mark.parametrize(
    ("accepts", "forged", "value"),
    [(True, b"", b"v=DKIM1"), (False, b"", b"over TCP"), (True, b"not ours", b"over TCP")],
)
def test_a_server_gets_its_cookie_back_if_it_knows_ours(over_tcp, accepts, forged, value):
    """RFC 7873: without it, the answer over UDP is BADCOOKIE."""

    def over_udp(wire):
        asked = dns.message.from_wire(wire)
        assert asked.ednsflags & dns.flags.DO
        cookie = asked.options[0].to_wire()
        if accepts and cookie[8:] == b"of the server":
            return [make_reply(wire)]
        made = dns.message.make_response(asked)
        made.use_edns(0, options=[GenericOption(10, (forged or cookie[:8]) + b"of the server")])
        made.set_rcode(dns.rcode.BADCOOKIE)
        return [made.to_wire()]

    async def work():
        async with asking(NameServer(over_udp, over_tcp())) as server:
            await server.prefetch(WITH_DO[:3])
            return [await server.ask(asked) for asked in WITH_DO[:3]]

    assert {answer.values for answer in asyncio.run(work())} == {(value,)}


def test_a_server_that_drops_questions_beside_records_gets_two_of_them():
    dropped = set()

    def over_udp(wire):
        asked = dns.message.from_wire(wire).question[0]
        if asked.rdtype == dns.rdatatype.SOA:
            dropped.add(asked.name)
            return []
        return [make_reply(wire)]

    async def work():
        async with asking(NameServer(over_udp), timeouts=QUICK, max_in_flight=64) as server:
            named = nameserver.NameServer("a.test", frozenset(("a.test",)), server)
            source, zone = queries.Source(), Zone("example.com", [named], is_secure=True)
            return await queries.gather(queries.ask_zone(source, zone, asked) for asked in MANY)

    answers = [response.answer.values for _, (response,) in asyncio.run(work())]
    assert answers == [(b"v=DKIM1",)] * len(MANY)
    assert len(dropped) == 2
