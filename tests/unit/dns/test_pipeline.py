"""Many questions over few TCP connections, whatever the server does with them."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import time

import pytest

from dkimctl.addresses import Address
from dkimctl.dns.messages import QueryLog, make_txt_question
from dkimctl.dns.transport import ConnectionLost, Pipeline, exchange

MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(40)]
ASKED = MANY[:1]


def pipeline_at(port: int, **options) -> Pipeline:
    return Pipeline(
        lambda: asyncio.open_connection("127.0.0.1", port),
        QueryLog(Address("127.0.0.1", port)),
        **{"timeout": 20, **options},
    )


def ask(there, questions=MANY, *, raises=None, **options):
    """The answers that came, by question, and perhaps an error at the end."""

    async def work():
        async with there:
            pipeline = pipeline_at(there.port, **options)
            if raises is None:
                await pipeline.ask(questions)
            else:
                with pytest.raises(raises):
                    await pipeline.ask(questions)
            return {question: one.answer for question, one in pipeline.responses.items()}

    return asyncio.run(work())


def reset(writer) -> None:
    """Close the connection with a reset."""
    channel = writer.get_extra_info("socket")
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.fixture
def echo(reply):
    """The response whose value is the first label of the question's name."""
    return lambda wire: reply(wire, wire[13 : 13 + wire[12]].decode())


def are_right(answers, questions=MANY) -> bool:
    return {one: answer.values for one, answer in answers.items()} == {
        one: (b"s%d" % number,) for number, one in enumerate(questions)
    }


@pytest.fixture
def serve(name_server, stream, echo):
    """A server; `answer` gives what to send back to a question, and whether to close then."""

    def make(answer=lambda wire: (stream.frame(echo(wire)), False)):
        async def over_tcp(reader, writer):
            is_last = False
            while not is_last:
                data, is_last = answer(await stream.read(reader))
                writer.write(data)

        return name_server(over_tcp=over_tcp)

    return make


@pytest.mark.parametrize("order", [1, -1])
def test_all_are_sent_before_the_first_answer_and_answers_come_in_any_order(
    serve, stream, echo, order
):
    held = []

    def hold(wire):
        held.append(stream.frame(echo(wire)))
        return (b"".join(held[::order]) if len(held) == len(MANY) else b""), False

    assert are_right(ask(serve(hold)))


def test_answers_may_come_in_pieces_of_any_size(name_server, stream, echo):
    async def over_tcp(reader, writer):
        while True:
            for byte in stream.frame(echo(await stream.read(reader))):
                writer.write(bytes((byte,)))
                await writer.drain()

    assert are_right(ask(name_server(over_tcp=over_tcp), MANY[:10]), MANY[:10])


@pytest.mark.parametrize("number", [1, 2, 7, 39])
def test_server_may_close_after_some_answers(name_server, stream, echo, number):
    async def over_tcp(reader, writer):
        for _ in range(number):
            writer.write(stream.frame(echo(await stream.read(reader))))

    there = name_server(over_tcp=over_tcp)
    assert are_right(ask(there))
    assert there.connections <= -(-len(MANY) // number) + 1


def test_server_may_close_when_it_gets_several_questions(name_server, stream, echo):
    async def over_tcp(reader, writer):
        data = await reader.read(1 << 16)
        if len(data) == 2 + int.from_bytes(data[:2]):
            writer.write(stream.frame(echo(data[2:])))

    assert are_right(ask(name_server(over_tcp=over_tcp)))


def test_server_may_read_one_question_and_ignore_the_others(name_server, stream, echo):
    open_now, most = set(), []

    async def over_tcp(reader, writer):
        open_now.add(writer)
        most.append(len(open_now))
        data = await reader.read(1 << 16)
        writer.write(stream.frame(echo(data[2 : 2 + int.from_bytes(data[:2])])))
        await reader.read()
        open_now.remove(writer)

    assert are_right(ask(name_server(over_tcp=over_tcp), timeout=0.5))
    assert max(most) <= 16 + 1  # connections with an answer do not stay open


def test_reset_after_some_answers_is_no_failure_and_logs_nothing(name_server, stream, echo, caplog):
    questions = [make_txt_question(f"s{n}._domainkey.example.com") for n in range(400)]

    async def over_tcp(reader, writer):
        for _ in range(64):
            writer.write(stream.frame(echo(await stream.read(reader))))
        await writer.drain()
        reset(writer)

    assert are_right(ask(name_server(over_tcp=over_tcp), questions), questions)
    assert not caplog.records


GARBAGE = {
    "empty messages": bytes(2 * 1000),
    "short messages": b"\0\1x" * 1000,
    "another ID": b"\0\x0cabcdefghijkl" * 1000,
    "longest message": b"\xff\xff" + b"\xff" * 0xFFFF,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_between_answers_is_ignored(serve, stream, echo, garbage):
    answers = ask(serve(lambda wire: (garbage + stream.frame(echo(wire)), False)), MANY[:3])
    assert are_right(answers, MANY[:3])


def test_endless_stream_takes_bounded_time(name_server):
    sent = itertools.count()

    async def over_tcp(reader, writer):
        while True:
            writer.write(b"\xff\xff" + b"\xff" * 0xFFFF)
            next(sent)
            await writer.drain()

    start = time.monotonic()
    assert ask(name_server(over_tcp=over_tcp), timeout=0.3, raises=ConnectionLost) == {}
    assert time.monotonic() - start < 10
    assert next(sent) > 1


@pytest.mark.parametrize("questions", [ASKED, MANY[:3]])
def test_silent_connection_times_out(name_server, questions):
    async def over_tcp(reader, writer):
        await reader.read()

    there = name_server(over_tcp=over_tcp)
    assert ask(there, questions, timeout=0.1, raises=ConnectionLost) == {}
    assert there.connections == 1


@pytest.mark.parametrize(
    ("data", "text"), [(b"", "it closed the connection"), (None, "it does not answer")]
)
def test_a_single_message_without_answer_is_explained(name_server, stream, data, text):
    async def over_tcp(reader, writer):
        await stream.read(reader)
        if data is None:
            await reader.read()
        else:
            reset(writer)

    async def work():
        async with name_server(over_tcp=over_tcp) as there:
            streams = await asyncio.open_connection("127.0.0.1", there.port)
            await exchange(streams, b"\0\1" + bytes(10), 0.2)

    with pytest.raises(ConnectionLost, match=text):
        asyncio.run(work())
