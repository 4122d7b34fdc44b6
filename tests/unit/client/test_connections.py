"""A response that is not complete in time is cut off with its connection, and no other is."""

from __future__ import annotations

import socket
import time

import httpx
import pytest

import hostile
from dkimctl.client.connections import DeadlineThread, network_client_factory, remote_address
from dkimctl.errors import ThreadLimitError
from thread_limits import FewThreads

LIMIT = 0.3  # seconds; the thread checks ten times as often


@pytest.fixture
def deadlines():
    deadlines = DeadlineThread(LIMIT)
    yield deadlines
    deadlines.close()


@pytest.fixture
def connect(deadlines):
    """A deadline with one connection; returns (deadline, our end, the peer's end)."""
    ends = []

    def connect():
        ours, peer = socket.socketpair()
        ends.extend((ours, peer))
        ours.settimeout(5)
        deadline = deadlines.new_deadline()
        deadline.add_connection(ours)
        return deadline, ours, peer

    yield connect
    for end in ends:
        end.close()


def start(deadline):
    deadline.start(time.monotonic() + LIMIT)


def is_open(ours, peer):
    peer.sendall(b"x")
    return ours.recv(1) == b"x"


def test_a_trickling_response_is_cut_off_at_its_deadline(connect):
    deadline, ours, peer = connect()
    started = time.monotonic()
    start(deadline)
    while time.monotonic() < started + 30:
        try:
            peer.sendall(b"x")
        except OSError:
            break
        if not ours.recv(1):
            break
        time.sleep(0.01)
    assert LIMIT <= time.monotonic() - started < LIMIT + 20
    assert deadline.stop() is True
    assert deadline.stop() is False, "expiry is reported once"


def test_a_response_in_time_keeps_its_connection(connect):
    deadline, ours, peer = connect()
    start(deadline)
    assert deadline.stop() is False
    time.sleep(2 * LIMIT)
    assert is_open(ours, peer)


@pytest.mark.slow
def test_each_response_has_its_own_deadline(connect):
    deadline, ours, peer = connect()
    for _ in range(4):
        deadline.start(time.monotonic() + 1)
        time.sleep(0.3)
    assert is_open(ours, peer)


def test_other_threads_connections_stay_open(connect):
    late, silent, _ = connect()
    other, ours, peer = connect()
    start(late)
    assert silent.recv(1) == b""
    assert is_open(ours, peer)
    assert (late.stop(), other.stop()) == (True, False)


def test_every_connection_of_the_thread_is_cut_off(connect):
    deadline, first, _ = connect()
    _, second, _ = connect()
    deadline.add_connection(second)
    start(deadline)
    assert (first.recv(1), second.recv(1)) == (b"", b"")


def test_a_closed_connection_does_no_harm(connect):
    deadline, ours, _ = connect()
    ours.close()
    start(deadline)
    time.sleep(2 * LIMIT)
    assert deadline.stop() is True


def test_closing_ends_the_thread():
    deadlines = DeadlineThread(60)
    started = time.monotonic()
    deadlines.close()
    assert time.monotonic() - started < 30


def test_a_connection_that_has_ended_has_no_remote_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = socket.create_connection(listener.getsockname())
        connection.close()
    assert remote_address(connection) is None


@pytest.mark.parametrize(("timeout", "connect"), [(30.0, 10.0), (2.0, 2.0)])
def test_connecting_to_a_silent_address_times_out_early(timeout, connect):
    with network_client_factory(timeout, None, None)() as client:
        assert client.timeout == httpx.Timeout(timeout, connect=connect)


@pytest.mark.parametrize("trusted_by", ["--ca-bundle", "SSL_CERT_FILE"])
def test_session_keys_with_which_the_secret_could_be_read_are_not_logged(
    tmp_path, monkeypatch, trusted_by
):
    bundle, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    log = tmp_path / "keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(log))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    ca_bundle = str(bundle) if trusted_by == "--ca-bundle" else None
    with hostile.servers() as serve:
        server = serve(lambda request: [hostile.whole(b"{}")], tls)
        with network_client_factory(5, ca_bundle, None)() as client:
            assert client.get(server.url).status_code == 200
    assert not log.exists() or "SECRET" not in log.read_text()


def test_no_request_is_sent_without_a_thread_that_enforces_its_deadline():
    with pytest.raises(ThreadLimitError):
        DeadlineThread(LIMIT, FewThreads(0))
