"""An answer that is not whole in time ends with its connection, and no other does."""

from __future__ import annotations

import socket
import time

import pytest

from dkimctl.client.deadline import DeadlineThread

LIMIT = 0.3  # seconds; the watch looks ten times as often


@pytest.fixture
def watch():
    watch = DeadlineThread(LIMIT)
    yield watch
    watch.close()


@pytest.fixture
def connect(watch):
    """A line with one connection; gives (line, our end, the other's)."""
    ends = []

    def connect():
        ours, other = socket.socketpair()
        ends.extend((ours, other))
        ours.settimeout(5)
        line = watch.line()
        line.add(ours)
        return line, ours, other

    yield connect
    for end in ends:
        end.close()


def expect(line):
    line.expect(time.monotonic() + LIMIT)


def is_open(ours, other):
    other.sendall(b"x")
    return ours.recv(1) == b"x"


def test_what_trickles_is_cut_at_its_time(connect):
    line, ours, other = connect()
    started = time.monotonic()
    expect(line)
    while time.monotonic() < started + 5:
        try:
            other.sendall(b"x")
        except OSError:
            break
        if not ours.recv(1):
            break
        time.sleep(0.01)
    assert LIMIT <= time.monotonic() - started < LIMIT + 1
    assert line.finish() is True
    assert line.finish() is False, "it is told once"


def test_what_came_in_time_is_left_alone(connect):
    line, ours, other = connect()
    expect(line)
    assert line.finish() is False
    time.sleep(2 * LIMIT)
    assert is_open(ours, other)


def test_each_answer_has_its_own_time(connect):
    line, ours, other = connect()
    for _ in range(4):
        expect(line)
        time.sleep(LIMIT / 2)
    assert is_open(ours, other)


def test_other_lines_go_on(connect):
    late, silent, _ = connect()
    fine, ours, other = connect()
    expect(late)
    assert silent.recv(1) == b""
    assert is_open(ours, other)
    assert (late.finish(), fine.finish()) == (True, False)


def test_every_connection_of_the_line_ends(connect):
    line, first, _ = connect()
    _, second, _ = connect()
    line.add(second)
    expect(line)
    assert (first.recv(1), second.recv(1)) == (b"", b"")


def test_a_connection_that_is_closed_does_no_harm(connect):
    line, ours, _ = connect()
    ours.close()
    expect(line)
    time.sleep(2 * LIMIT)
    assert line.finish() is True


def test_closing_ends_the_thread():
    watch = DeadlineThread(60)
    started = time.monotonic()
    watch.close()
    assert time.monotonic() - started < 1
