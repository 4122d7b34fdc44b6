"""The service behind a real HTTP server on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KeyMaker
from fakes import Clock
from running import running

THREADS = 16
Post = Callable[..., tuple[int, Any]]


@pytest.fixture
def port(store: Store, clock: Clock, make_key: KeyMaker) -> Iterator[int]:
    app = create_app(store, clock=clock, make_key=make_key)
    with running(app, THREADS) as port:
        yield port


@pytest.fixture
def post(port: int, token: str) -> Post:
    def send(body: Any, *, token: str = token, **options: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("POST", "/domain/dkim", body, headers, **options)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    return send


def _exchange(port: int, method: str, path: str, **headers: str) -> HTTPResponse:
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response


def _body(*domains: str) -> bytes:
    entries = [{"sign_domain": domain, "selector": "s1"} for domain in domains]
    return json.dumps({"domains": entries}).encode()


def test_a_chunked_body_is_read(post: Post) -> None:
    body = _body("example.com")
    status, answer = post(iter([body[:7], body[7:]]), encode_chunked=True)
    assert status == 200
    assert answer["items"][0]["result"]["code"] == "201"


@pytest.mark.interface("8", "body-size")
def test_a_huge_chunked_body_is_413(post: Post) -> None:
    status, answer = post((b" " * 65536 for _ in range(15)), encode_chunked=True)
    assert status == 413
    assert list(answer) == ["message"]


def test_a_huge_body_is_413(post: Post) -> None:
    status, answer = post(b" " * (1024 * 1024))
    assert status == 413
    assert list(answer) == ["message"]


@pytest.mark.interface("7.1", "405-method")
def test_an_unknown_method_is_405(port: int, token: str) -> None:
    response = _exchange(port, "BREW", "/domain/dkim", Authorization=f"Bearer {token}")
    assert (response.status, response.getheader("Allow")) == (405, "POST")
    response = _exchange(port, "BREW", "/oauth2/token")
    assert (response.status, response.getheader("Allow")) == (405, "POST")


@pytest.mark.interface("4.1", "bad-request")
def test_the_error_of_the_token_endpoint_keeps_its_content_type(port: int) -> None:
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = "grant_type=client_credentials"
        connection.request("POST", "/oauth2/token", body, headers)
        response = connection.getresponse()
        assert response.read() == b'{"error": "invalid_client"}'
    assert response.getheader("Content-Type") == "application/json;charset=UTF-8"


def test_concurrent_requests_are_all_answered(post: Post) -> None:
    bodies = [_body(f"a{number}.example", f"b{number}.example") for number in range(48)]
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(post, bodies))
    codes = [item["result"]["code"] for _, answer in answers for item in answer["items"]]
    assert codes == ["201"] * 96


@pytest.mark.interface("7.3", "code-409")
def test_of_clients_that_race_for_a_name_one_gets_it(
    post: Post,
    token: str,
    other_credentials: ClientCredentials,
    get_token: Callable[[ClientCredentials], str],
) -> None:
    holders = [token, get_token(other_credentials)] * (THREADS // 2)
    names = [f"d{number}.example" for number in range(10)]
    start = threading.Barrier(THREADS)

    def race(holder: str) -> list[Any]:
        start.wait(timeout=30)
        return list(post(_body(*names), token=holder)[1]["items"])

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(race, holders))
    for of_one_name in zip(*answers, strict=True):
        codes = [item["result"]["code"] for item in of_one_name]
        assert sorted(codes) == ["201"] + ["409"] * (THREADS - 1)
        winner = holders[codes.index("201")]
        with_data = [
            holder for holder, item in zip(holders, of_one_name, strict=True) if len(item) > 3
        ]
        assert with_data == [winner] * (THREADS // 2)
