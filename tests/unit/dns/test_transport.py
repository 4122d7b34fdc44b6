"""Questions over UDP and TCP as they are sent, answers in any order, and signatures."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time

import dns.message
import dns.name
import dns.rcode
import dns.tsig
import pytest

from dkimctl.addresses import Address
from dkimctl.dns.messages import encode, make_txt_question
from dkimctl.dns.nameserver import Server, Timeouts
from dkimctl.dns.transport import (
    ConnectionLost,
    NotTrusted,
    Pipeline,
    SignatureRefused,
    Signer,
)
from fake_dns import NameServer, frame, make_reply, read_query

ASKED = make_txt_question("s1._domainkey.example.com")


def ask_udp(there, *, number=1):
    async def work():
        async with there:
            timeouts = Timeouts(udp=(0.2, 0.2, 10))
            server = Server("127.0.0.1", there.port, timeouts=timeouts, max_in_flight=number)
            return await asyncio.gather(*(server.ask(ASKED) for _ in range(number)))

    return asyncio.run(work())


class Noting(NameServer):
    """Keeps the addresses it was asked from, in `ports`."""

    def datagram_received(self, data, addr):
        self.ports = {*getattr(self, "ports", ()), addr}
        super().datagram_received(data, addr)


def test_tries_have_the_same_id_and_port_so_that_a_late_answer_counts():
    there = Noting(lambda wire: [make_reply(there.asked[0])] if len(there.asked) == 3 else ())
    assert ask_udp(there)[0].values == (b"v=DKIM1",)
    assert len({wire[:2] for wire in there.asked}) == len(there.ports) == 1
    assert {wire[12:][: len(ASKED.section)] for wire in there.asked} == {ASKED.section}


def test_each_question_has_a_new_id_and_port():
    there = Noting()
    ask_udp(there, number=8)
    assert len(there.ports) == 8
    assert len({wire[:2] for wire in there.asked}) > 6


TCP_MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(40)]


def pipeline_at(port: int, **options) -> Pipeline:
    return Pipeline(
        lambda: asyncio.open_connection("127.0.0.1", port),
        Address("127.0.0.1", port),
        **{"timeout": 20, **options},
    )


def ask_tcp(there, questions=TCP_MANY, *, raises=None, **options):
    """The answers that came, by question, and perhaps an error at the end."""

    async def work():
        async with there:
            pipeline = pipeline_at(there.port, **options)
            if raises is None:
                await pipeline.ask(questions)
            else:
                with pytest.raises(raises):
                    await pipeline.ask(questions)
            return pipeline.answers

    return asyncio.run(work())


@pytest.fixture
def echo():
    """The response whose value is the first label of the question's name."""
    return lambda wire: make_reply(wire, wire[13 : 13 + wire[12]].decode())


def are_right(answers, questions=TCP_MANY) -> bool:
    return {one: answer.values for one, answer in answers.items()} == {
        one: (b"s%d" % number,) for number, one in enumerate(questions)
    }


@pytest.fixture
def serve(echo):
    """A server; `answer` gives what to send back to a question, and whether to close then."""

    def make(answer=lambda wire: (frame(echo(wire)), False)):
        async def over_tcp(reader, writer):
            is_last = False
            while not is_last:
                data, is_last = answer(await read_query(reader))
                writer.write(data)

        return NameServer(over_tcp=over_tcp)

    return make


def test_all_are_sent_before_the_first_answer_and_answers_come_in_any_order(serve, echo):
    held = []

    def hold(wire):
        held.append(frame(echo(wire)))
        return (b"".join(held[::-1]) if len(held) == len(TCP_MANY) else b""), False

    assert are_right(ask_tcp(serve(hold)))


@pytest.mark.parametrize("number", [1, 7])
def test_server_may_close_after_some_answers(echo, number):
    async def over_tcp(reader, writer):
        for _ in range(number):
            writer.write(frame(echo(await read_query(reader))))

    there = NameServer(over_tcp=over_tcp)
    assert are_right(ask_tcp(there))
    assert there.connections <= -(-len(TCP_MANY) // number) + 1


def test_server_may_read_one_question_and_ignore_the_others(echo):
    open_now, most = set(), []

    async def over_tcp(reader, writer):
        open_now.add(writer)
        most.append(len(open_now))
        data = await reader.read(1 << 16)
        writer.write(frame(echo(data[2 : 2 + int.from_bytes(data[:2])])))
        await reader.read()
        open_now.remove(writer)

    assert are_right(ask_tcp(NameServer(over_tcp=over_tcp), timeout=0.5))
    assert max(most) <= 16 + 1  # connections with an answer do not stay open


GARBAGE = {
    "short messages": b"\0\1x" * 1000,
    "another ID": b"\0\x0cabcdefghijkl" * 1000,
    "longest message": b"\xff\xff" + b"\xff" * 0xFFFF,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_between_answers_is_ignored(serve, echo, garbage):
    answers = ask_tcp(serve(lambda wire: (garbage + frame(echo(wire)), False)), TCP_MANY[:3])
    assert are_right(answers, TCP_MANY[:3])


def test_endless_stream_takes_bounded_time():
    sent = itertools.count()

    async def over_tcp(reader, writer):
        while True:
            writer.write(b"\xff\xff" + b"\xff" * 0xFFFF)
            next(sent)
            await writer.drain()

    start = time.monotonic()
    assert ask_tcp(NameServer(over_tcp=over_tcp), timeout=0.3, raises=ConnectionLost) == {}
    assert time.monotonic() - start < 10
    assert next(sent) > 1


SECRET = base64.b64encode(b"a key for this test alone").decode()
QUERY = encode(0x1234, make_txt_question("s1._domainkey.example.com"), recursion=False, edns=False)
ALGORITHMS = [
    "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha256-128", "hmac-sha384", "hmac-sha384-192",
    "hmac-sha512", "hmac-sha512-256",
]  # fmt: skip


def signer(algorithm="hmac-sha256") -> Signer:
    return Signer(dns.tsig.Key("Key.Example", SECRET, algorithm))


def keyring(algorithm="hmac-sha256"):
    return {dns.name.from_text("key.example"): dns.tsig.Key("key.example", SECRET, algorithm)}


def answer_to(signed: bytes, keys) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(signed, keyring=keys))
    return made.to_wire()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_dnspython_verifies_our_signature_and_we_verify_its(algorithm):
    one, keys = signer(algorithm), keyring(algorithm)
    signed, mac = one.sign(QUERY)
    assert len(signed) == len(QUERY) + one.size
    parsed = dns.message.from_wire(signed, keyring=keys)
    assert parsed.had_tsig
    assert parsed.mac == mac
    plain = one.verify(answer_to(signed, keys), mac)
    assert dns.message.from_wire(QUERY).is_response(dns.message.from_wire(plain))


def test_every_changed_byte_of_an_answer_is_noticed():
    one = signer()
    signed, mac = one.sign(QUERY)
    answer = answer_to(signed, keyring())
    for at in range(2, len(answer)):  # the ID of the message is not signed
        changed = bytearray(answer)
        changed[at] ^= 1
        try:
            plain = one.verify(bytes(changed), mac)
        except (NotTrusted, SignatureRefused):
            continue
        assert plain == one.verify(answer, mac)  # the name of the key as the server writes it


def test_answers_without_signature_are_not_trusted():
    one = signer()
    signed, mac = one.sign(QUERY)
    refused = dns.message.make_response(dns.message.from_wire(QUERY))
    refused.set_rcode(5)
    with pytest.raises(NotTrusted, match="REFUSED"):
        one.verify(refused.to_wire(), mac)
    for wire in (b"", QUERY[:5], QUERY, signed[:-1], QUERY[:4] + b"\xff" * 8, b"\xff" * 400):
        with pytest.raises(NotTrusted):
            one.verify(wire, mac)


def test_an_answer_of_another_time_is_not_trusted(monkeypatch):
    one, now = signer(), time.time()
    signed, mac = one.sign(QUERY)
    answer = answer_to(signed, keyring())
    monkeypatch.setattr(time, "time", lambda: now + 290)
    assert one.verify(answer, mac)
    monkeypatch.setattr(time, "time", lambda: now + 310)
    with pytest.raises(NotTrusted, match=r"differs by 5 min"):
        one.verify(answer, mac)


@pytest.mark.parametrize(
    ("error", "other", "server_time"),
    [
        (dns.rcode.BADSIG, b"", None),
        (dns.rcode.BADKEY, b"", None),
        (dns.rcode.BADTIME, (1_800_000_000).to_bytes(6), 1_800_000_000),
        (dns.rcode.BADTIME, b"\xff" * 8, None),
        (99, b"\x01", None),
    ],
)
def test_what_the_server_says_of_our_signature_is_told(error, other, server_time):
    algorithm = dns.name.from_text("hmac-sha256").to_wire()
    data = b"".join((
        algorithm, bytes(6), (300).to_bytes(2), bytes(2), QUERY[:2], int(error).to_bytes(2),
        len(other).to_bytes(2), other,
    ))  # fmt: skip
    head = dns.name.from_text("key.example").to_wire() + b"\0\xfa\0\xff\0\0\0\0"
    wire = QUERY[:10] + b"\0\1" + QUERY[12:] + head + len(data).to_bytes(2) + data
    with pytest.raises(SignatureRefused) as raised:
        signer().verify(wire, b"the MAC of the question")
    assert (raised.value.error, raised.value.server_time) == (error, server_time)


def test_the_secret_is_shown_nowhere():
    one = signer()
    assert SECRET not in f"{one!r} {vars(one)}"
