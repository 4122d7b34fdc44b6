"""DNS servers, resolvers and sources of unit tests, which answer as each test says."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Self

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from dkimctl.dns.messages import Answer, decode, encode, make_txt_question
from dkimctl.dns.nameserver import NameServer as AskedServer
from dkimctl.dns.nameserver import NoAnswer
from dkimctl.dns.verdicts import Finding, Verdict
from dkimctl.dns.zones import Zone


def make_reply(wire: bytes, value: str = "v=DKIM1", *, flags: str = "AA", rcode: int = 0) -> bytes:
    """The response to a question, with one TXT record unless there is no value."""
    asked = dns.message.from_wire(wire)
    made = dns.message.make_response(asked)
    made.flags |= dns.flags.from_text(flags)
    made.set_rcode(dns.rcode.Rcode.make(rcode))
    if value:
        made.answer = [dns.rrset.from_text(asked.question[0].name, 60, "IN", "TXT", f'"{value}"')]
    return made.to_wire(max_size=65535)


async def read_query(reader: asyncio.StreamReader) -> bytes:
    """The next question of a TCP connection. Raises EOFError."""
    return await reader.readexactly(int.from_bytes(await reader.readexactly(2)))


def frame(wire: bytes) -> bytes:
    """A message as it stands in a TCP stream."""
    return len(wire).to_bytes(2) + wire


class NameServer(asyncio.DatagramProtocol):
    """A DNS server on loopback that keeps what it was asked.

    `over_udp` takes a datagram and gives those to send back. `over_tcp` is given the streams of
    each connection; without it, connections are refused.
    """

    def __init__(
        self,
        over_udp: Callable[[bytes], Iterable[bytes]] = lambda wire: [make_reply(wire)],
        over_tcp: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable] | None = None,
        *,
        host: str = "127.0.0.1",
    ) -> None:
        self.host = host
        self.over_udp = over_udp
        self.over_tcp = over_tcp
        self.asked: list[bytes] = []
        self.connections = 0
        self._tcp: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        while True:  # until a port is free for both
            self._udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: self, local_addr=(self.host, 0)
            )
            self.port = self._udp.get_extra_info("sockname")[1]
            if self.over_tcp is None:
                return self
            try:
                self._tcp = await asyncio.start_server(self._connected, self.host, self.port)
            except OSError:
                self._udp.close()
            else:
                return self

    async def __aexit__(self, *_: object) -> None:
        if self._tcp is not None:
            self._tcp.close()
            await self._tcp.wait_closed()
        self._udp.close()
        await asyncio.sleep(0.01)  # the socket is closed in the loop's next turn

    def datagram_received(self, data: bytes, addr: tuple) -> None:
        self.asked.append(data)
        self._answer(data, addr)

    def _answer(self, data: bytes, addr: tuple) -> None:
        for wire in self.over_udp(data):
            self._udp.sendto(wire, addr)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                await self.over_tcp(reader, writer)
        finally:
            writer.close()


class Resolver:
    """A resolver with these records, by (name, type); keeps what it was asked."""

    def __init__(self, records):
        self.records = records
        self.asked = []
        self.resets = 0

    async def ask(self, asked):
        kind = dns.rdatatype.to_text(asked.rdtype)
        key = asked.name.to_text(omit_final_dot=True).lower(), kind
        self.asked.append(key)
        await asyncio.sleep(0)
        data = self.records.get(key, [])
        if isinstance(data, Exception):
            raise data
        made = dns.message.make_response(dns.message.from_wire(encode(1, asked, recursion=True)))
        if data:
            class_, *data = data if data[0] == "HS" else ("IN", *data)
            made.answer = [dns.rrset.from_text(asked.name, 60, class_, kind, *data)]
        return decode(made.to_wire(), asked)

    def reset(self):
        self.resets += 1


class FakeServer:
    """A server with an answer for each name: an Answer, its values, or an error to raise.

    Other names have the answer of the wildcard. `asked` keeps the names it was asked for, and
    `bursts` those of each burst beforehand. When it is asked for an SOA record, it denies the names
    in `denied`, and gives the answer for the zone's name, or no record.
    """

    def __init__(
        self, label="ns.test (192.0.2.1)", zone="example.com", answers=None, wildcard=()
    ) -> None:
        self.label = label
        self.hosts = frozenset(label.partition(" (")[0].split(", "))
        self.zone = zone
        self.answers = answers or {}
        self.wildcard = wildcard
        self.denied: set[str] = set()
        self.asked: list[str] = []
        self.bursts: list[list[str]] = []

    async def ask(self, asked) -> Answer:
        name = asked.name.to_text(omit_final_dot=True).lower()
        if asked.rdtype == dns.rdatatype.SOA and (name != self.zone or name not in self.answers):
            return Answer(3 if name in self.denied else 0, True, False, zone=self.zone)
        self.asked.append(name)
        await asyncio.sleep(random.random() / 1000)  # so that answers come in any order
        answer = self.answers.get(name, self.wildcard)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return answer
        values = tuple(value.encode("utf-8", "surrogateescape") for value in answer)
        return Answer(0, True, False, values, zone="" if values else self.zone)

    async def prefetch(self, questions) -> None:
        records = [
            asked._replace(flags=0) for asked in questions if asked.rdtype == dns.rdatatype.TXT
        ]
        names = [asked.name.to_text(omit_final_dot=True) for asked in records]
        assert records == [make_txt_question(name) for name in names]
        self.bursts.append(names)


class FakeSource:
    """Knows the servers of zones, by their names; an error in their place is raised.

    `states` has further fields of some of the zones. `bogus_records` has the reasons why records
    cannot be validated, by question; `validated` keeps the questions.
    """

    def __init__(self, zones, *, is_given: bool = False, states=(), bogus_records=()) -> None:
        self.zones = zones
        self.states = dict(states)
        self.bogus_records = dict(bogus_records)
        self.validated: list[str] = []
        self.is_given = is_given
        self.answers_beside, self.dropped = {}, {}

    async def prefetch(self, names) -> None:
        """No zone is known beforehand."""

    async def zone_with(self, name):
        above = [zone for zone in self.zones if name == zone or name.endswith(f".{zone}")]
        return await self.zone(max(above, key=len)) if above else Zone("", ())

    async def zone(self, name):
        servers = self.zones.get(name, NoAnswer(f"DNS names no server for {name}"))
        if isinstance(servers, Exception):
            raise servers
        named = [AskedServer(one.label, one.hosts, one) for one in servers]
        return Zone(name, named, **self.states.get(name, {}))

    async def unresolved(self, questions):
        self.validated += map(str, questions)
        reasons = [self.bogus_records.get(str(question)) for question in questions]
        return [Finding(Verdict.BOGUS, reason) if reason else None for reason in reasons]

    def forget(self) -> None:
        """There is no cache."""
