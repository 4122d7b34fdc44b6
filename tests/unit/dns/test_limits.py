"""Servers that limit the rate of their answers over UDP are asked over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.nameserver import NoAnswer, Server, Timeouts
from fake_dns import NameServer, make_reply

# They wait for answers that never come.
pytestmark = pytest.mark.slow

MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(400)]
TIMEOUTS = Timeouts(udp=(0.3, 0.3, 0.3), tcp=10, burst=0.3)
FREE = 20  # answers over UDP, until the limit


@pytest.fixture(params=["lost", "truncated", "in turn"])
def limiting(request, over_tcp):
    """A server that loses or truncates all answers but the first ones."""

    def over_udp(wire):
        if len(there.asked) <= FREE:
            return [make_reply(wire)]
        is_truncated = {"lost": False, "truncated": True}.get(request.param, len(there.asked) % 2)
        return [make_reply(wire, "", flags="AA TC")] if is_truncated else ()

    there = NameServer(over_udp, over_tcp("v=DKIM1"))
    return there


@contextlib.asynccontextmanager
async def asking(there, **options):
    async with there, asyncio.timeout(60):
        yield Server("127.0.0.1", there.port, max_in_flight=32, timeouts=TIMEOUTS, **options)


async def ask_all(server, questions=MANY):
    await server.prefetch(questions)
    return await asyncio.gather(*map(server.ask, questions))


def test_limiting_server_is_asked_over_one_connection_and_remembered(limiting):
    async def work():
        async with asking(limiting) as server:
            answers = await ask_all(server)
            assert {answer.values for answer in answers} == {(b"v=DKIM1",)}
            assert limiting.connections == 1
            asked = len(limiting.asked)
            start = time.monotonic()
            await ask_all(server)
            await server.ask(MANY[0])
            assert time.monotonic() - start < 5
            return len(limiting.asked) - asked

    assert asyncio.run(work()) == 0


def test_limiting_server_without_tcp_is_asked_over_udp():
    seen = set()

    def lossy(wire):
        """Loses each question the first time."""
        section = wire[12:-11]
        is_new = section not in seen and len(there.asked) > FREE
        seen.add(section)
        return () if is_new else [make_reply(wire)]

    there = NameServer(lossy)

    async def work():
        async with asking(there) as server:
            return await ask_all(server, MANY[:100])

    answers = asyncio.run(work())
    assert {answer.values for answer in answers} == {(b"v=DKIM1",)}


def test_limit_and_failing_tcp_are_no_answer(limiting):
    async def fail(reader, writer):
        await reader.read(1)

    limiting.over_tcp = fail

    async def work():
        async with asking(limiting) as server:
            await server.prefetch(MANY)
            return await asyncio.gather(*map(server.ask, MANY), return_exceptions=True)

    answers = asyncio.run(work())
    answered = [answer for answer in answers if not isinstance(answer, NoAnswer)]
    assert {answer.values for answer in answered} == {(b"v=DKIM1",)}
    assert len(answered) <= FREE
