"""Many questions in one burst: answers that come at once are taken, all else is left out."""

from __future__ import annotations

import asyncio
import time

import dns.message
import dns.rcode
import pytest

from dkimctl.addresses import Address
from dkimctl.dns.messages import EDNS_REFUSALS, make_txt_question
from dkimctl.dns.transport import Burst

MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(50)]


OPTIONS = {
    "in_flight": 8, "recursion": False, "edns": True, "refusals": EDNS_REFUSALS, "silence": 1.5,
}  # fmt: skip


def send(there, questions=MANY, **options):
    """The result of one burst."""

    async def work():
        async with there, asyncio.timeout(20):
            burst = Burst(server=Address("127.0.0.1", there.port), **(OPTIONS | options))
            await burst.ask(questions)
            return burst

    return asyncio.run(work())


def ask(*args, **options):
    """The answers to one burst."""
    return send(*args, **options).answers


def number_of(wire: bytes) -> int:
    """Of the selector that is asked for."""
    return int(wire[14 : 13 + wire[12]])


def are_answered(questions, answers) -> bool:
    """Whether just these are, but for a few whose message ID was taken."""
    return set(answers) <= set(questions) and len(answers) > len(questions) - 4


@pytest.fixture
def answering(reply):
    """Answers each question with its number, but for what `others` says."""

    def make(others=lambda wire: None):
        def answer(wire):
            replies = others(wire)
            return [reply(wire, str(number_of(wire)))] if replies is None else replies

        return answer

    return make


def test_each_question_has_its_answer(name_server, answering):
    there = name_server(answering())
    answers = ask(there)
    assert are_answered(MANY, answers)
    expected = {asked: (b"%d" % number,) for number, asked in enumerate(MANY)}
    values = {asked: answer.values for asked, answer in answers.items()}
    assert values.items() <= expected.items()
    assert len(there.asked) == len(answers)


FAULTS = [{"rcode": rcode} for rcode in sorted(EDNS_REFUSALS - {dns.rcode.BADVERS})]


@pytest.mark.parametrize("fault", [{"flags": "TC"}, *FAULTS])
def test_truncated_and_edns_refusals_are_left_out_at_once(name_server, reply, answering, fault):
    odd = answering(lambda wire: [reply(wire, "", **fault)] if number_of(wire) % 2 else None)
    start = time.monotonic()
    result = send(name_server(odd), silence=15)
    assert are_answered(MANY[::2], result.answers)
    assert (result.truncated, result.refused) == ((25, 0) if "flags" in fault else (0, 25))
    assert time.monotonic() - start < 10


def test_lost_answers_are_left_out_after_a_short_wait(name_server, answering):
    lossy = answering(lambda wire: [] if number_of(wire) in (3, 44) else None)
    start = time.monotonic()
    answers = ask(name_server(lossy), silence=0.5)
    assert are_answered([*MANY[:3], *MANY[4:44], *MANY[45:]], answers)
    assert time.monotonic() - start < 10


def test_forged_and_repeated_answers_are_ignored(name_server, reply):
    def forging(wire):
        other = bytes([wire[0] ^ 1]) + wire[1:]
        return [b"", b"x", wire, reply(other, "forged"), reply(wire), reply(wire, "late")]

    answers = ask(name_server(forging), in_flight=1)
    assert are_answered(MANY, answers)
    assert {answer.values for answer in answers.values()} == {(b"v=DKIM1",)}


def test_other_datagrams_do_not_extend_the_wait(name_server):
    class Babbling(name_server):
        def _answer(self, data, addr):
            self._udp.sendto(b"nothing that was asked", addr)
            asyncio.get_running_loop().call_later(0.1, self._answer, data, addr)

    assert ask(Babbling(), MANY[:1], silence=0.3) == {}
