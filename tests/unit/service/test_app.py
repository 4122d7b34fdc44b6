"""Errors that all endpoints answer in the same way: interface 7.3, 7.4."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx
import pytest
from falcon.testing import Result, TestClient
from sqlalchemy import text

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database import Store


@pytest.mark.interface("4.3", "other-endpoints")
@pytest.mark.interface("7.4", "other-statuses", "other-fields")
@pytest.mark.parametrize(
    "path",
    ["/", "/oauth2", "/oauth2/token/", "/domain", "/domain/dkim/x", "/send", "/send/a/b"],
)
def test_an_unknown_path_is_404(client: TestClient, path: str) -> None:
    result = client.simulate_get(path)
    assert result.status_code == 404
    assert result.json == {"message": "Not Found"}


@pytest.mark.interface("4.2", "path")
@pytest.mark.interface("7.4", "other-statuses")
@pytest.mark.parametrize(
    ("path", "allowed"), [("/domain/dkim", "POST"), ("/send/some-delivery", "DELETE")]
)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "OPTIONS"])
def test_another_method_is_405(
    client: TestClient, token: str, path: str, allowed: str, method: str
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    result = client.simulate_request(method, path, headers=headers)
    assert result.status_code == 405
    assert result.headers["Allow"] == allowed
    assert result.json == {"message": "Method Not Allowed"}


@pytest.mark.interface("5.3", "registering")
def test_another_method_without_a_token_is_401(client: TestClient) -> None:
    assert client.simulate_get("/domain/dkim").status_code == 401


@pytest.mark.interface("4.2", "error")
@pytest.mark.interface("7.3", "500")
def test_an_unexpected_error_is_500_and_described_only_in_the_log(
    store: Store, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken_clock() -> float:
        raise RuntimeError("what it failed on")

    result = DescribedClient(create_app(store, clock=broken_clock)).simulate_post(
        "/domain/dkim", headers={"Authorization": f"Bearer {token}"}
    )
    assert result.status_code == 500
    assert result.json == {"message": "Internal Server Error"}
    ((name, level, line),) = caplog.record_tuples
    assert (name, level) == ("dkimctl.service.resources", logging.ERROR)
    assert line.startswith("a request failed: RuntimeError at test_app.py:")
    assert caplog.records[0].exc_info is None
    assert token not in caplog.text


@pytest.mark.interface("4.1", "other-bodies")
@pytest.mark.interface("7.1", "500")
def test_an_unexpected_error_at_the_token_endpoint_is_500(
    store: Store, credentials: ClientCredentials, basic: Callable[[str, str], str]
) -> None:
    def broken_clock() -> float:
        raise RuntimeError("what it failed on")

    headers = {
        "Authorization": basic(credentials.client_id, credentials.secret),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    result = DescribedClient(create_app(store, clock=broken_clock)).simulate_post(
        "/oauth2/token", body="grant_type=client_credentials", headers=headers
    )
    assert result.status_code == 500
    assert result.json == {"message": "Internal Server Error"}


@pytest.mark.parametrize("length", ["-1", "x", "1.5"])
def test_an_invalid_content_length_is_400(client: TestClient, token: str, length: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Length": length}
    with httpx.Client(transport=httpx.WSGITransport(app=client.app)) as raw_client:
        response = raw_client.post("http://localhost/domain/dkim", content=b"{}", headers=headers)
    assert response.status_code == 400
    assert list(response.json()) == ["message"]


@pytest.mark.parametrize(("chunks", "status"), [(1, 200), (1025, 413)])
def test_a_chunked_body_is_read_up_to_the_limit(
    client: TestClient, token: str, chunks: int, status: int
) -> None:
    first = b'{"domains": [{"sign_domain": "example.com"}]}'
    content = (first.ljust(1024) if number == 0 else b" " * 1024 for number in range(chunks))
    with httpx.Client(transport=httpx.WSGITransport(app=client.app)) as raw_client:
        response = raw_client.post(
            "http://localhost/domain/dkim",
            content=content,
            headers={"Authorization": f"Bearer {token}"},
        )
    assert response.status_code == status


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # which stores anything
def test_an_answer_that_cannot_be_rendered_is_500_in_json(
    store: Store, register: Callable[..., Result]
) -> None:
    entry = {"sign_domain": "example.com", "selector": "s1"}
    register(entry)
    with store.writing() as connection:
        connection.execute(text("UPDATE registrations SET value = x'ff'"))
    result = register(entry)
    assert (result.status_code, result.json) == (500, {"message": "Internal Server Error"})
