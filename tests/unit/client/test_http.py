"""Every exception of the HTTP library is mapped into our tree."""

from __future__ import annotations

import inspect

import httpx
import pytest

from dkimctl.client import http
from dkimctl.errors import DkimctlError, MaybeProcessed, NotProcessed
from dkimctl.models import Secret

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
