"""One question over UDP: sent again, and a reply to any of the tries counts."""

from __future__ import annotations

import asyncio

import pytest

from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.nameserver import Server, Timeouts

ASKED = make_txt_question("s1._domainkey.example.com")


def ask(there, *, number=1):
    async def work():
        async with there:
            timeouts = Timeouts(udp=(0.2, 0.2, 10))
            server = Server("127.0.0.1", there.port, timeouts=timeouts, max_in_flight=number)
            return await asyncio.gather(*(server.ask(ASKED) for _ in range(number)))

    return asyncio.run(work())


@pytest.mark.parametrize("tries", [2, 3])
def test_late_reply_to_the_first_try_counts(name_server, reply, tries):
    def late(wire):
        return [reply(there.asked[0])] if len(there.asked) == tries else ()

    there = name_server(late)
    assert ask(there)[0].values == (b"v=DKIM1",)
    assert len(there.asked) == tries


@pytest.fixture
def noting(name_server):
    """A server that keeps the addresses it was asked from, in `ports`."""

    class Noting(name_server):
        def datagram_received(self, data, addr):
            self.ports.add(addr)
            super().datagram_received(data, addr)

    Noting.ports = set()
    return Noting


def test_tries_have_the_same_id_and_question_and_come_from_one_port(noting, reply):
    there = noting(lambda wire: [reply(wire)] if len(there.asked) == 3 else ())
    ask(there)
    assert len({wire[:2] for wire in there.asked}) == len(noting.ports) == 1
    assert {wire[12:][: len(ASKED.section)] for wire in there.asked} == {ASKED.section}


def test_each_question_has_a_new_id_and_port(noting):
    there = noting()
    ask(there, number=8)
    assert len(noting.ports) == 8
    assert len({wire[:2] for wire in there.asked}) > 6
