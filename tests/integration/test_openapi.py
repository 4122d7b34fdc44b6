"""What the HTTP server answers by itself is in the OpenAPI description as well."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from description import assert_described, operations
from dkimctl.service.server import MAX_HEAD

pytestmark = pytest.mark.slow

REFUSED = {
    "Content-Length: x": 400,
    "Host: y": 400,
    f"X-Long: {'x' * 10 * MAX_HEAD}": 431,
    "Transfer-Encoding: gzip, chunked": 400,
}


@pytest.mark.parametrize(("method", "path"), operations())
@pytest.mark.parametrize(("header", "status"), REFUSED.items(), ids=range(len(REFUSED)))
def test_a_request_that_does_not_reach_the_service(live_service, method, path, header, status):
    answer = exchange(live_service.url, f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    line = head.partition(b"\r\n")[0]
    assert line.split()[1] == str(status).encode()
    operation = operations()[method, path]
    assert str(status) in operation["responses"]
    if body:
        headers = {"Content-Type": "application/json"}
        assert_described(operation, status, headers, json.loads(body))


def exchange(url: str, request: str) -> bytes:
    """The answer, which ends with the connection."""
    address = urlsplit(url)
    answer = b""
    with (
        socket.create_connection((address.hostname, address.port), timeout=10) as connection,
        suppress(ConnectionError),  # the server does not read the rest
    ):
        connection.sendall(request.encode())
        while piece := connection.recv(65536):
            answer += piece
    return answer
