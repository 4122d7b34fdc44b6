"""Every exception of the HTTP library is mapped into our tree."""

from __future__ import annotations

import inspect
import socket

import httpx
import pytest

from dkimctl.client import connections, http
from dkimctl.errors import DkimctlError, MaybeProcessed, NoService, NotProcessed
from dkimctl.models.secret import Secret

RAISED = [
    kind
    for _, kind in inspect.getmembers(httpx, inspect.isclass)
    if issubclass(kind, httpx.HTTPError | httpx.StreamError | httpx.InvalidURL)
]
NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol",
            "LocalProtocolError", "InvalidURL"}  # fmt: skip


class Failing(httpx.BaseTransport):
    """A transport on which every request fails in one way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise self._error


def _make(kind: type[Exception]) -> Exception:
    if kind is httpx.HTTPStatusError:
        request = httpx.Request("GET", "http://127.0.0.1/")
        return kind("x", request=request, response=httpx.Response(500))
    required = [
        parameter
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    return kind(*("x" for _ in required))


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_no_exception_of_the_library_escapes(kind):
    client = http.HttpClient(lambda: httpx.Client(transport=Failing(_make(kind))))
    with client, pytest.raises(DkimctlError) as caught:
        client.send(http.HttpRequest("POST", "http://127.0.0.1/x", Secret("Bearer x")))
    expected = NotProcessed if kind.__name__ in NOT_SENT else MaybeProcessed
    assert type(caught.value) is expected
    assert "127.0.0.1" in caught.value.message
    assert caught.value.hint


class Leading(httpx.BaseTransport):
    """A transport whose connection leads to `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["trace"]("connection.connect_tcp.complete", {"return_value": self})
        return httpx.Response(200, stream=httpx.ByteStream(b""))

    def get_extra_info(self, _: str) -> Leading:
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
def test_plain_http_ends_where_it_would_leave_this_machine(url, address, is_refused):
    transport = Leading(address)
    with http.HttpClient(lambda: httpx.Client(transport=transport)) as client:
        request = http.HttpRequest("GET", url, Secret("Bearer x"))
        if not is_refused:
            assert client.send(request).status == 200
            return
        with pytest.raises(NoService, match=f"localhost is at {address}"):
            client.send(request)
        assert transport.is_closed


def test_a_connection_that_has_ended_leads_nowhere():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = socket.create_connection(listener.getsockname())
        connection.close()
    assert connections.address_elsewhere(connection) is None


@pytest.mark.parametrize(("timeout", "connect"), [(30.0, 10.0), (2.0, 2.0)])
def test_nobody_waits_long_for_an_address_that_is_silent(timeout, connect):
    with connections.over_network(timeout, None, None)() as client:
        assert client.timeout == httpx.Timeout(timeout, connect=connect)


ODD = ["about:blank", "mailto:a@b", "foo:bar", "//[", "http://x:99999/", "/" + "x" * 65_000, "/y"]


@pytest.mark.parametrize("location", ODD)
def test_a_redirect_is_an_answer_wherever_it_leads(scripted_server, make_answer, location):
    scripted_server.answer = lambda request: make_answer(302, b"", {"Location": location})
    with http.HttpClient.over_network(timeout=2) as client:
        request = http.HttpRequest("POST", scripted_server.url, Secret("Bearer x"))
        assert client.send(request).status == 302
    assert len(scripted_server.requests) == 1


def test_the_last_request_ends_its_connection(scripted_server, make_answer):
    scripted_server.answer = lambda request: make_answer(200)
    with http.HttpClient.over_network(timeout=2) as client:
        for is_last in (False, False, True, True):
            request = http.HttpRequest("GET", scripted_server.url, Secret("x"), is_last=is_last)
            client.send(request)
    assert scripted_server.connections == 2
