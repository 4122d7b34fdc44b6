"""Asking one DNS server: in parallel, over UDP and TCP, again after failures."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

import dns.message
import dns.rcode
import pytest

from dkimctl.dns.messages import encode, make_txt_question
from dkimctl.dns.nameserver import NoAnswer, NoRoute, Server, Timeouts
from needs import NO_NAMESPACE, give_up

ASKED = make_txt_question("s1._domainkey.example.com")
MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(20)]
REFUSED = dns.rcode.REFUSED
QUICK = Timeouts(udp=(0.1, 0.1, 0.1), tcp=0.5, burst=0.3)
ONLY_TCP = "it answers over TCP, but not over UDP, which resolvers need"


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
def truncated(reply):
    return lambda wire: [reply(wire, "", flags="AA TC")]


def test_truncated_answer_is_asked_for_over_tcp(name_server, truncated, over_tcp):
    there = name_server(truncated, over_tcp())
    assert ask(there).values == (b"over TCP",)
    assert (len(there.asked), there.connections) == (1, 1)


def forged(wire, reply):
    """Answers that are none to this question, or under another number."""
    other = encode(int.from_bytes(wire[:2]), MANY[5], recursion=False)
    return [
        b"",
        wire[:2],
        wire,
        reply(wire, "forged")[:-20],
        bytes([wire[0] ^ 1]) + reply(wire, "forged")[1:],
        reply(other, "forged"),
        wire[:2] + b"\x84\0" + bytes(8),
    ]


def test_forged_and_repeated_answers_are_ignored(name_server, reply):
    answer = ask(name_server(lambda wire: [*forged(wire, reply), reply(wire), reply(wire, "late")]))
    assert answer.values == (b"v=DKIM1",)


def test_server_that_refuses_udp_is_not_believed_over_tcp(name_server, over_tcp):
    there = name_server(silent, over_tcp())

    async def work():
        async with asking(there) as server, asyncio.timeout(1.4):
            await there.stop_udp()
            return await asyncio.gather(server.ask(ASKED), return_exceptions=True)

    (answer,) = asyncio.run(work())
    assert str(answer) == ONLY_TCP


def test_closed_port_is_no_answer_at_once(name_server):
    async def work():
        async with name_server() as there:
            port = there.port
        server = Server("127.0.0.1", port)
        async with asyncio.timeout(1.4):
            with pytest.raises(NoAnswer, match="nothing answers at that address and port"):
                await server.ask(ASKED)

    asyncio.run(work())


@pytest.mark.parametrize(
    "make", [lambda wire: wire[:2] + b"junk", lambda wire: wire, lambda wire: wire[:2]]
)
def test_unreadable_answer_over_tcp_is_no_answer(name_server, truncated, over_tcp, make):
    answer = ask(name_server(truncated, over_tcp(before=lambda wire: [make(wire)])))
    assert isinstance(answer, NoAnswer)
    assert "cannot be read" in str(answer)


@pytest.mark.parametrize("number", [1, 3, 64])
def test_no_more_questions_than_allowed_are_in_flight(name_server, number):
    there = name_server()
    there.delay = 0.01
    there.holds_back = lambda: there.in_flight < number and len(there.asked) < len(MANY)
    answers = asyncio.run(ask_each(there, MANY, max_in_flight=number))
    assert {answer.values for answer in answers} == {(b"v=DKIM1",)}
    assert there.most_in_flight == min(number, len(MANY))


def test_server_that_answers_only_over_tcp_is_not_believed(name_server, over_tcp):
    there = name_server(silent, over_tcp())
    answers = asyncio.run(ask_each(there, MANY, max_in_flight=8, timeouts=QUICK))
    assert {str(answer) for answer in answers} == {ONLY_TCP}
    assert 8 <= len({wire[:2] for wire in there.asked}) < 16  # then it is no longer asked


def test_resolver_that_answers_only_over_tcp_is_believed(name_server, over_tcp):
    there = name_server(silent, over_tcp())
    options = {"max_in_flight": 8, "timeouts": QUICK, "needs_udp": False}
    answers = asyncio.run(ask_each(there, MANY, **options))
    assert {answer.values for answer in answers} == {(b"over TCP",)}
    assert 8 <= len({wire[:2] for wire in there.asked}) < 16  # then only over TCP


@pytest.mark.parametrize("is_truncated", [False, True])
def test_server_that_loses_some_answers_is_believed_over_tcp(
    name_server, reply, over_tcp, is_truncated
):
    def lossy(wire):
        if len(there.asked) > 1:
            return ()
        return [reply(wire, "", flags="AA TC") if is_truncated else reply(wire)]

    there = name_server(lossy, over_tcp())
    first, *others = asyncio.run(ask_each(there, MANY[:3], timeouts=QUICK))
    assert first.values == ((b"over TCP",) if is_truncated else (b"v=DKIM1",))
    assert {answer.values for answer in others} == {(b"over TCP",)}


async def drip(reader, writer):
    """Announce much, and send a byte now and then."""
    writer.write(b"\xff\xff")
    while not writer.is_closing():
        writer.write(b"\0")
        await writer.drain()
        await asyncio.sleep(0.1)


async def stay_mute(reader, writer):
    await reader.read()


@pytest.mark.parametrize("over_tcp", [drip, stay_mute])
def test_silent_connection_times_out(name_server, truncated, over_tcp):
    answer = ask(name_server(truncated, over_tcp), timeouts=QUICK)
    assert isinstance(answer, NoAnswer)
    assert str(answer) == "its answer over UDP is truncated; over TCP, it does not answer"


def test_silent_server_is_given_up_until_it_answers_a_burst(name_server, reply):
    there = name_server(silent)

    async def work():
        async with asking(there, max_in_flight=8, timeouts=QUICK) as server:
            await asyncio.gather(*map(server.ask, MANY[:8]), return_exceptions=True)
            number = len(there.asked)
            more = await asyncio.gather(*map(server.ask, MANY[8:]), return_exceptions=True)
            assert {str(error) for error in more} == {"it has not answered 8 questions in a row"}
            assert len(there.asked) == number
            there.over_udp = lambda wire: [reply(wire)]
            with pytest.raises(NoAnswer):
                await server.ask(ASKED)
            await server.prefetch(MANY[:1])
            return [await server.ask(asked) for asked in (MANY[0], ASKED)]

    assert [answer.values for answer in asyncio.run(work())] == [(b"v=DKIM1",)] * 2


def test_server_is_asked_again_after_reset_failures(name_server, reply, truncated):
    there = name_server(truncated)

    async def work():
        async with asking(there) as server:
            for _ in range(9):
                with pytest.raises(NoAnswer):
                    await server.ask(ASKED)
            there.over_udp = lambda wire: [reply(wire)]
            server.reset_failures()
            return await server.ask(ASKED)

    assert asyncio.run(work()).values == (b"v=DKIM1",)


@pytest.mark.parametrize("in_burst", [False, True])
def test_one_answer_resets_the_failures(name_server, reply, truncated, in_burst):
    there = name_server()

    async def work():
        async with asking(there) as server:
            there.over_udp = truncated
            for _ in range(7):
                with pytest.raises(NoAnswer, match="nothing answers"):
                    await server.ask(ASKED)
            there.over_udp = lambda wire: [reply(wire)]
            if in_burst:
                await server.prefetch([ASKED])
            assert (await server.ask(ASKED)).values == (b"v=DKIM1",)
            there.over_udp = truncated
            for _ in range(8):
                with pytest.raises(NoAnswer, match="nothing answers"):
                    await server.ask(ASKED)
            with pytest.raises(NoAnswer, match="8 questions in a row"):
                await server.ask(ASKED)

    asyncio.run(work())


ISOLATED = """
import asyncio
from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.nameserver import NoAnswer, Server

async def work():
    server = Server("127.0.0.1", 5353)
    for number in range(8):
        try:
            await server.ask(make_txt_question("example.com"))
        except NoAnswer as error:
            print(type(error).__name__, error)

asyncio.run(work())
"""


def test_no_route_is_reported(needs_tool):
    """On a machine without a route to the server."""
    needs_tool("unshare")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        give_up(NO_NAMESPACE)
    words = ["unshare", "-rn", sys.executable, "-c", ISOLATED]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    errors = done.stdout.splitlines()
    assert errors == [f"{NoRoute.__name__} there is no route to it"] * 8
