"""Every exception of httpx becomes one of ours; Retry-After is read as RFC 9110 defines it."""

from __future__ import annotations

import inspect
import itertools
import math
import socket
import subprocess
import sys

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hostile
from dkimctl.client import http
from dkimctl.errors import DkimctlError, MaybeProcessed, NoService, NotProcessed
from dkimctl.models import Secret

TRANSPORT = [
    kind
    for _, kind in inspect.getmembers(httpx, inspect.isclass)
    if issubclass(kind, httpx.TransportError | httpx.DecodingError | httpx.InvalidURL)
]
RAISED = [kind("x") for kind in TRANSPORT] + [httpx.TooManyRedirects("x"), httpx.StreamClosed()]
NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol",
            "LocalProtocolError", "InvalidURL"}  # fmt: skip


class FailingTransport(httpx.BaseTransport):
    """A transport on which every request fails with `error`."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise self._error


@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
def test_every_httpx_exception_is_mapped(raised):
    client = http.HttpClient(lambda: httpx.Client(transport=FailingTransport(raised)))
    with client, pytest.raises(DkimctlError) as caught:
        client.send(http.HttpRequest("POST", "http://127.0.0.1/x", Secret("Bearer x")))
    expected = NotProcessed if type(raised).__name__ in NOT_SENT else MaybeProcessed
    assert type(caught.value) is expected
    assert "127.0.0.1" in caught.value.message
    assert caught.value.hint


class ConnectedTransport(httpx.BaseTransport):
    """A transport whose connections are to `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["trace"]("connection.connect_tcp.complete", {"return_value": self})
        return httpx.Response(200, stream=httpx.ByteStream(b""))

    def get_extra_info(self, _: str) -> ConnectedTransport:
        return self

    def getpeername(self) -> tuple[str, int]:
        return self.address, 80

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("url", "address", "is_refused"),
    [("http://localhost", "127.0.0.1", False), ("http://localhost", "::1", False),
     ("http://localhost", "203.0.113.1", True), ("http://localhost", "2001:db8::1", True),
     ("https://service.example", "203.0.113.1", False)],
)  # fmt: skip
def test_plain_http_to_another_machine_is_refused(url, address, is_refused):
    transport = ConnectedTransport(address)
    with http.HttpClient(lambda: httpx.Client(transport=transport)) as client:
        request = http.HttpRequest("GET", url, Secret("Bearer x"))
        if not is_refused:
            assert client.send(request).status == 200
            return
        with pytest.raises(NoService, match=f"localhost resolves to {address}"):
            client.send(request)
        assert transport.is_closed


NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("120", 120.0), (" 7 ", 7.0), ("000999", 999.0), ("9" * 5000, 1e9),
     ("Sun, 06 Nov 1994 08:51:37 GMT", 120.0),
     # The obsolete forms, which must be understood.
     ("Sunday, 06-Nov-94 08:51:37 GMT", 120.0), ("Sun Nov  6 08:51:37 1994", 120.0),
     *((value, None) for value in
       ("", "soon", "-1", "1.5", "1e3", "١٢", "nan", "inf", "Sun, 99 Nov 1994"))],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date_or_nothing(value, seconds):
    assert http.parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize(("age", "sent_at", "seconds"), [("59", NOW, 120.0), ("100", None, 0.0)])
def test_retry_after_is_compared_with_the_date_header_not_our_clock(age, sent_at, seconds):
    retry_at, date = "Sun, 06 Nov 1994 08:51:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"
    headers = {"Retry-After": retry_at, "Date": date, "Age": age}
    answer = httpx.Response(503, headers=headers, stream=httpx.ByteStream(b""))
    transport = httpx.MockTransport(lambda _: answer)
    with http.HttpClient(lambda: httpx.Client(transport=transport)) as client:
        response = client.send(http.HttpRequest("GET", "http://localhost", None))
    assert (response.sent_at, response.retry_after) == (sent_at, seconds)


@given(st.text())
def test_any_retry_after_gives_a_finite_number_or_none(value):
    seconds = http.parse_retry_after(value, NOW)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


def test_other_threads_connections_stay_open():
    ends = [socket.socketpair() for _ in range(2)]
    late, other = http.ResponseDeadline(), http.ResponseDeadline()
    for deadline, (ours, _) in zip((late, other), ends, strict=True):
        ours.settimeout(5)
        deadline.add_connection(ours)
    late.start(5.0)
    for deadline in (late, other):
        deadline.enforce(5.0)
    (silent, _), (ours, peer) = ends
    assert silent.recv(1) == b""
    peer.sendall(b"x")
    assert ours.recv(1) == b"x"
    assert [late.stop(), late.stop(), other.stop()] == [True, False, False]
    for end in (*ends[0], *ends[1]):
        end.close()


def test_a_response_that_ends_with_its_time_is_not_complete():
    """Its length is not stated, so that the end of the connection would be its end."""
    drip = itertools.chain([hostile.UNENDING, b"{}"], hostile.drip(b" "))
    with (
        hostile.servers() as serve,
        http.HttpClient.over_network(timeout=0.5) as client,
        pytest.raises(MaybeProcessed, match="in time"),
    ):
        client.send(http.HttpRequest("GET", serve(lambda request: drip).url, None))


def test_which_proxy_it_was_is_looked_up_only_for_an_error(monkeypatch):
    """On Windows, and for a long list of exceptions, that takes a while."""
    asked = []
    monkeypatch.setattr(http, "bypasses", asked.append)
    names = {"proxy_name": "http://p.example", "proxy_source": "HTTPS_PROXY"}
    with http.HttpClient.over_network(timeout=5, **names) as client:
        monkeypatch.setattr(client, "_exchange", lambda *_: http.HttpResponse(200, b""))
        client.send(http.HttpRequest("GET", "https://a.example", None))
        assert asked == []

        def refuse(*_):
            raise http.httpx.ConnectError("refused")

        monkeypatch.setattr(client, "_exchange", refuse)
        with pytest.raises(
            NotProcessed, match=r"through the proxy http://p.example \(HTTPS_PROXY\)"
        ):
            client.send(http.HttpRequest("GET", "https://a.example", None))
        assert asked == ["a.example"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://127.0.0.1:1", "nonsense://"])
def test_proxies_of_the_environment_are_not_for_this_machine(monkeypatch, proxy):
    for name in "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY":
        monkeypatch.setenv(name, proxy)
    with hostile.servers() as serve:
        server = serve(lambda request: [hostile.whole(b"{}")])
        with http.HttpClient.over_network(server.url, timeout=5) as client:
            assert client.send(http.HttpRequest("GET", server.url, None)).status == 200


def test_httpx_is_imported_without_click(tmp_path):
    """Which it would take in for its command line: a third of the time."""
    (tmp_path / "click.py").write_text("raise SystemError")
    code = "import sys, dkimctl.client.http as http; print('click' in sys.modules, http.httpx)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("False <module 'httpx'"), done.stderr
