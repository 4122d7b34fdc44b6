"""One question over UDP: sent again, and a reply to any of the tries counts."""

from __future__ import annotations

import asyncio

import dns.message
import pytest

from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.udp import exchange

ASKED = make_txt_question("s1._domainkey.example.com")


def ask(there, *, edns=True, waits=(0.2, 0.2, 10)):
    async def work():
        async with there:
            return await exchange(
                "127.0.0.1", there.port, ASKED, recursion=False, edns=edns, waits=waits
            )

    return asyncio.run(work())


def uses_edns(wire: bytes) -> bool:
    return dns.message.from_wire(wire).edns >= 0


@pytest.mark.parametrize("tries", [2, 3])
def test_late_reply_to_the_first_try_counts(name_server, reply, tries):
    def late(wire):
        return [reply(there.asked[0])] if len(there.asked) == tries else ()

    there = name_server(late)
    assert ask(there).answer.values == (b"v=DKIM1",)
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

    async def work():
        async with there:
            asks = (
                exchange("127.0.0.1", there.port, ASKED, recursion=False, edns=True, waits=(10,))
                for _ in range(8)
            )
            await asyncio.gather(*asks)

    asyncio.run(work())
    assert len(noting.ports) == 8
    assert len({wire[:2] for wire in there.asked}) > 6


def test_only_the_last_try_is_without_edns(name_server, reply):
    there = name_server(lambda wire: () if uses_edns(wire) else [reply(wire)])
    result = ask(there)
    assert [uses_edns(wire) for wire in there.asked] == [True, True, False]
    assert (result.answer.values, result.to_edns) == ((b"v=DKIM1",), False)


def test_late_reply_to_a_try_with_edns_is_told_from_one_without(name_server, reply):
    there = name_server(lambda wire: () if uses_edns(wire) else [reply(there.asked[0])])
    assert ask(there).to_edns


def test_no_try_has_edns_unless_asked_for(name_server, reply):
    there = name_server(lambda wire: [reply(wire)] if len(there.asked) == 3 else ())
    assert not ask(there, edns=False).to_edns
    assert not any(map(uses_edns, there.asked))


def test_truncated_answer_is_a_reply(name_server, reply):
    there = name_server(lambda wire: [reply(wire, "", flags="AA TC")])
    assert ask(there) == (None, True)
    assert len(there.asked) == 1


def test_silence_is_a_timeout_after_all_tries(name_server):
    there = name_server(lambda wire: ())
    with pytest.raises(TimeoutError):
        ask(there, waits=(0.02, 0.02, 0.02))
    assert len(there.asked) == 3
