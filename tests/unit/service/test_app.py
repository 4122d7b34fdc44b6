"""Errors that all endpoints answer in the same way: interface 7.3, 7.4."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import text

from description import DescribedClient
from dkimctl.service.app import create_app


@pytest.mark.interface("4.3", "other-endpoints")
@pytest.mark.interface("7.4", "other-statuses", "other-fields")
@pytest.mark.parametrize(
    "path", ["/", "/oauth2", "/oauth2/token/", "/domain", "/domain/dkim/x", "/send", "/send/a/b"]
)
def test_an_unknown_path_is_404(client, path):
    result = client.simulate_get(path)
    assert result.status_code == 404
    assert result.json == {"message": "Not Found"}


@pytest.mark.interface("4.2", "path")
@pytest.mark.interface("7.4", "other-statuses")
@pytest.mark.parametrize(
    ("path", "allowed"), [("/domain/dkim", "POST"), ("/send/some-delivery", "DELETE")]
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_another_method_is_405(client, token, path, allowed, method):
    headers = {"Authorization": f"Bearer {token}"}
    result = client.simulate_request(method, path, headers=headers)
    assert result.status_code == 405
    assert result.headers["Allow"] == allowed
    assert result.json == {"message": "Method Not Allowed"}


@pytest.mark.interface("5.3", "registering")
def test_another_method_without_a_token_is_401(client):
    assert client.simulate_get("/domain/dkim").status_code == 401


@pytest.mark.interface("4.1", "other-bodies")
@pytest.mark.interface("4.2", "error")
@pytest.mark.interface("7.1", "500")
@pytest.mark.interface("7.3", "500")
@pytest.mark.parametrize("path", ["/domain/dkim", "/oauth2/token"])
def test_an_unexpected_error_is_500_and_described_only_in_the_log(
    store, token, credentials, basic, caplog, path
):
    def broken_clock():
        raise RuntimeError("what it failed on")

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    pair = {"Authorization": basic(credentials.client_id, credentials.secret)}
    headers = {"Authorization": f"Bearer {token}"} if path == "/domain/dkim" else pair | form
    result = DescribedClient(create_app(store, clock=broken_clock)).simulate_post(
        path, body="grant_type=client_credentials", headers=headers
    )
    assert result.status_code == 500
    assert result.json == {"message": "Internal Server Error"}
    ((name, level, line),) = caplog.record_tuples
    assert (name, level) == ("dkimctl.service.resources", logging.ERROR)
    assert line.startswith("a request failed: RuntimeError at test_app.py:")
    assert caplog.records[0].exc_info is None
    assert token not in caplog.text


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # which stores anything
def test_an_answer_that_cannot_be_rendered_is_500_in_json(store, register):
    entry = {"sign_domain": "example.com", "selector": "s1"}
    register(entry)
    with store.writing() as connection:
        connection.execute(text("UPDATE registrations SET value = x'ff'"))
    result = register(entry)
    assert (result.status_code, result.json) == (500, {"message": "Internal Server Error"})
