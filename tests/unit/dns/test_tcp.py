"""Many questions over few TCP connections, whatever the server does with them."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct

import pytest

from dkimctl.dns.messages import make_txt_question
from dkimctl.dns.tcp import TcpClient, UnreadableAnswer

MANY = [make_txt_question(f"s{number}._domainkey.example.com") for number in range(40)]
ASKED = MANY[:1]


def ask(there, questions=MANY, *, timeout=20, at_once=1000):
    """The answer or error of each question, with `at_once` of them in flight."""

    async def work():
        async with there:
            client = TcpClient("127.0.0.1", there.port, recursion=False, timeout=timeout)
            slots = asyncio.Semaphore(at_once)

            async def ask_one(question):
                async with slots:
                    return await client.ask(question, edns=True)

            return await asyncio.gather(*map(ask_one, questions), return_exceptions=True)

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


def are_right(answers) -> bool:
    return [answer.values for answer in answers] == [(b"s%d" % n,) for n in range(len(answers))]


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


def test_all_questions_share_a_connection(serve):
    there = serve()
    assert are_right(ask(there))
    assert there.connections == 1


def test_all_questions_are_sent_before_the_first_answer(serve, stream, echo):
    held = []

    def hold(wire):
        held.append(stream.frame(echo(wire)))
        return (b"".join(held) if len(held) == len(MANY) else b""), False

    assert are_right(ask(serve(hold)))


def test_answers_may_come_in_any_order(serve, stream, echo):
    held = []

    def reverse(wire):
        held.append(stream.frame(echo(wire)))
        return (b"".join(reversed(held)) if len(held) == len(MANY) else b""), False

    assert are_right(ask(serve(reverse)))


def test_answers_may_come_in_pieces_of_any_size(name_server, stream, echo):
    async def over_tcp(reader, writer):
        while True:
            for byte in stream.frame(echo(await stream.read(reader))):
                writer.write(bytes((byte,)))
                await writer.drain()

    assert are_right(ask(name_server(over_tcp=over_tcp), MANY[:10]))


def test_server_may_close_after_each_answer(serve, stream, echo):
    there = serve(lambda wire: (stream.frame(echo(wire)), True))
    assert are_right(ask(there))
    assert there.connections == len(MANY)


@pytest.mark.parametrize("number", [2, 7, 39])
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

    assert are_right(ask(name_server(over_tcp=over_tcp), timeout=1, at_once=8))
    assert max(most) < 8 + 4  # connections with an answer do not stay open


def test_reset_after_some_answers_is_no_failure_and_logs_nothing(name_server, stream, echo, caplog):
    questions = [make_txt_question(f"s{n}._domainkey.example.com") for n in range(400)]

    async def over_tcp(reader, writer):
        for _ in range(64):
            writer.write(stream.frame(echo(await stream.read(reader))))
        await writer.drain()
        reset(writer)

    answers = ask(name_server(over_tcp=over_tcp), questions, at_once=64)
    assert sum(hasattr(answer, "values") for answer in answers) >= len(answers) - 64
    assert not caplog.records


def test_connection_limit_is_remembered(name_server, stream, echo):
    async def over_tcp(reader, writer):
        writer.write(stream.frame(echo(await stream.read(reader))))

    async def work():
        async with name_server(over_tcp=over_tcp) as there:
            client = TcpClient("127.0.0.1", there.port, recursion=False, timeout=20)
            for _ in range(3):
                await asyncio.gather(*(client.ask(question, edns=True) for question in MANY))
            return there.connections

    assert asyncio.run(work()) == 3 * len(MANY)


def test_restarted_server_is_asked_over_a_new_connection(name_server, stream, echo):
    writers = []

    async def over_tcp(reader, writer):
        writers.append(writer)
        while True:
            writer.write(stream.frame(echo(await stream.read(reader))))

    async def work():
        async with name_server(over_tcp=over_tcp) as there:
            client = TcpClient("127.0.0.1", there.port, recursion=False, timeout=20)
            first = await client.ask(MANY[0], edns=True)
            writers[0].close()
            return [first, await client.ask(MANY[1], edns=True)]

    assert are_right(asyncio.run(work()))


def test_idle_connection_is_closed(name_server, stream, echo):
    closed = []

    async def over_tcp(reader, writer):
        writer.write(stream.frame(echo(await stream.read(reader))))
        await reader.read()
        closed.append(True)

    async def work():
        async with name_server(over_tcp=over_tcp) as there, asyncio.timeout(20):
            client = TcpClient("127.0.0.1", there.port, recursion=False, timeout=20)
            await client.ask(MANY[0], edns=True)
            while not closed:
                await asyncio.sleep(0.01)

    asyncio.run(work())


GARBAGE = {
    "empty messages": bytes(2 * 1000),
    "short messages": b"\0\1x" * 1000,
    "another ID": b"\0\x0cabcdefghijkl" * 1000,
    "longest message": b"\xff\xff" + bytes(0xFFFF),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_between_answers_is_ignored(serve, stream, echo, garbage):
    answers = ask(serve(lambda wire: (garbage + stream.frame(echo(wire)), False)), MANY[:3])
    right = [answer for answer in answers if not isinstance(answer, UnreadableAnswer)]
    assert len(right) >= 2  # the ID of one may happen to be that of the garbage
    assert all(answer.values for answer in right)


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff", b"\xff\xff\0\0", bytes(range(256))]
)
def test_garbage_alone_has_no_answer(serve, data):
    answers = ask(serve(lambda wire: (data, True)), MANY[:3])
    assert all(isinstance(answer, OSError | EOFError | UnreadableAnswer) for answer in answers)


def test_endless_stream_takes_bounded_time_and_memory(name_server):
    sent = itertools.count()

    async def over_tcp(reader, writer):
        while True:
            writer.write(b"\xff\xff" + bytes(0xFFFF))
            next(sent)
            await writer.drain()

    async def work():
        async with name_server(over_tcp=over_tcp) as there:
            client = TcpClient("127.0.0.1", there.port, recursion=False, timeout=0.3)
            with pytest.raises(TimeoutError):
                await client.ask(MANY[0], edns=True)
            connection = client._latest
            assert len(connection._received) < 1 << 17
            await asyncio.wait((connection._task,), timeout=20)
            assert connection._task.done()

    asyncio.run(work())
    assert next(sent) > 1


@pytest.mark.parametrize("questions", [ASKED, MANY[:3]])
def test_silent_connection_times_out(name_server, questions):
    async def over_tcp(reader, writer):
        await reader.read()

    there = name_server(over_tcp=over_tcp)
    answers = ask(there, questions, timeout=0.1)
    assert all(isinstance(answer, TimeoutError) for answer in answers)
    assert there.connections <= 1 + len(questions)


def test_one_lost_answer_does_not_lose_the_others(serve, stream, echo):
    lossy = lambda wire: (b"" if b"\x02s7" in wire else stream.frame(echo(wire)), False)  # noqa: E731
    answers = ask(serve(lossy), timeout=0.5)
    assert isinstance(answers.pop(7), TimeoutError)
    assert {len(answer.values) for answer in answers} == {1}


def test_refused_connection_is_reported_at_once(name_server):
    async def work():
        async with name_server() as there:
            port = there.port
        client = TcpClient("127.0.0.1", port, recursion=False, timeout=20)
        asks = (client.ask(question, edns=True) for question in MANY)
        return await asyncio.gather(*asks, return_exceptions=True)

    assert {type(answer) for answer in asyncio.run(work())} == {ConnectionRefusedError}


def test_reset_connection_is_reported(name_server, stream):
    async def over_tcp(reader, writer):
        await stream.read(reader)
        reset(writer)

    (answer,) = ask(name_server(over_tcp=over_tcp), ASKED)
    assert isinstance(answer, ConnectionResetError)


def test_truncated_answer_cannot_be_read(serve, stream, reply):
    truncated = lambda wire: (stream.frame(reply(wire, "", flags="AA TC")), False)  # noqa: E731
    (answer,) = ask(serve(truncated), ASKED)
    assert isinstance(answer, UnreadableAnswer)
