"""The log of questions and answers."""

from __future__ import annotations

import asyncio
import logging
import re

import dns.message
import dns.rrset
import pytest

from dkimctl.addresses import Address
from dkimctl.dns.messages import NS, Answer, QueryLog, make_question, make_txt_question
from dkimctl.dns.nameserver import NoAnswer, Server, Timeouts

ASKED = make_txt_question("s1._domainkey.example.com")
QUICK = Timeouts(udp=(0.1, 0.1, 0.1), tcp=0.5, burst=0.3)


@pytest.fixture
def logged(caplog):
    """The lines so far, without the milliseconds."""
    caplog.set_level(logging.INFO, "dkimctl.dns")
    return lambda: [re.sub(r", \d+ ms$", "", record.getMessage()) for record in caplog.records]


def run(there, *, prefetch: bool = False) -> None:
    async def work() -> None:
        async with there:
            server = Server(there.host, there.port, timeouts=QUICK)
            if prefetch:
                await server.prefetch([ASKED])
            await server.ask(ASKED)

    asyncio.run(work())


@pytest.mark.parametrize("prefetch", [False, True])
def test_an_answer_is_logged_with_its_server(name_server, logged, prefetch):
    there = name_server()
    run(there, prefetch=prefetch)
    name = f"{there.host}:{there.port}"
    assert logged() == [f'{name} UDP: TXT s1._domainkey.example.com: NOERROR aa, "v=DKIM1"']


def test_a_server_that_is_silent_is_logged_for_each_way_of_asking(name_server, logged):
    there = name_server(lambda wire: ())
    with pytest.raises(NoAnswer):
        run(there, prefetch=True)
    assert [line.partition(": ")[0].split()[1] for line in logged()] == ["UDP", "UDP", "TCP"]
    assert all(": TXT s1._domainkey.example.com: no answer" in line for line in logged())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(3, True, False, zone="example.com"), "NXDOMAIN aa, no record, zone example.com"),
        (Answer(5, False, False), "REFUSED, no record"),
        (Answer(0, False, False, delegated="a.example"), "NOERROR, referral to a.example"),
        (
            Answer(0, True, False, (b"x",), alias="k.example", is_validated=True),
            'NOERROR aa ad, alias of k.example, "x"',
        ),
        (Answer(0, True, False, (b"a", b"b")), 'NOERROR aa, 2 records: "a", "b"'),
        (Answer(0, True, False, (b"\x1b[31m\xff",)), r'NOERROR aa, "\x1b[31m\udcff"'),
        (Answer(0, True, False, (b"p" * 400,)), f'NOERROR aa, "{"p" * 60}…"'),
        (None, "truncated"),
    ],
)
def test_what_came_back_is_told_in_short(logged, answer, text):
    QueryLog(Address("2001:db8::1")).answered("TCP", ASKED, answer, 0.0)
    assert logged() == [f"2001:db8::1 TCP: TXT s1._domainkey.example.com: {text}"]


def test_records_of_other_types_are_told(logged):
    records = dns.rrset.from_text("example.com.", 60, "IN", "NS", "ns1.example.net.")
    made = dns.message.Message()
    made.answer = [records]
    asked = make_question("example.com", NS)
    QueryLog(Address("192.0.2.1")).answered("UDP", asked, Answer(0, True, False, message=made), 0.0)
    assert logged() == ['192.0.2.1 UDP: NS example.com: NOERROR aa, "ns1.example.net."']
