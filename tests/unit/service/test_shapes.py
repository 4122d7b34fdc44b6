"""The service answers like tests/fixtures/api, which the client's tests read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from falcon.testing import Result

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials, add_delivery

FOLDER = Path(__file__).parents[2] / "fixtures" / "api"
REQUEST = "register-request"
ANSWERS = sorted({path.stem for path in FOLDER.iterdir()} - {REQUEST})
STATUSES = {
    "forbidden": 403,
    "invalid-client": 400,
    "register-created": 200,
    "register-failed": 500,
    "register-mixed": 200,
    "register-refused": 400,
    "send-cancelled": 200,
    "token": 200,
    "unauthorized": 401,
}
GENERATED = "k[0-9a-f]{7,8}"
# Texts that may differ from the fixture, and the pattern that both must match.
FREE = {
    "access_token": r"[A-Za-z0-9._~+/-]+=*",
    "selector": GENERATED,
    "fqdn": rf"{GENERATED}\._domainkey\.example\.org",
    "value": r"v=DKIM1; g=\*; k=rsa; p=[A-Za-z0-9+/]+=*",
    "start_date": r"\d{4}-\d\d-\d\dT\d\d:\d\d[+-]\d\d:\d\d",
    "regist_date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d",
}


def _read(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _outline(value, name=""):
    """The value with types, and with the pattern instead of each text that may differ."""
    if isinstance(value, dict):
        return {key: _outline(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_outline(inner) for inner in value]
    if name in FREE and re.fullmatch(FREE[name], value):
        return FREE[name]
    return type(value), value  # as 1, 1.0 and True are equal


def _post(app, token, *entries):
    headers = {"Authorization": f"Bearer {token}"}
    return DescribedClient(app).simulate_post(
        "/domain/dkim", json={"domains": entries}, headers=headers
    )


@pytest.fixture
def answer_token(request_token, credentials):
    return request_token(credentials)


@pytest.fixture
def answer_invalid_client(request_token):
    return request_token(ClientCredentials("unknown", "secret"))


@pytest.fixture
def answer_unauthorized(client):
    return client.simulate_post("/domain/dkim")


@pytest.fixture
def answer_forbidden(register, token, clock):
    clock.now += 3600
    return register(token=token)


@pytest.fixture
def answer_send_cancelled(client, store, credentials, token):
    add_delivery(store, credentials.client_id, "123")
    return client.simulate_delete("/send/123", headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def answer_register_created(client, token):
    """The answer to the request in the fixtures, sent byte for byte."""
    body = (FOLDER / f"{REQUEST}.json").read_bytes()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return client.simulate_post("/domain/dkim", body=body, headers=headers)


@pytest.fixture
def answer_register_refused(register):
    return register()


@pytest.fixture
def answer_register_failed(store, token):
    def broken_clock():
        raise OSError

    return _post(create_app(store, clock=broken_clock), token)


@pytest.fixture
def answer_register_mixed(store, clock, fixed_keys, register, get_token, other_credentials, token):
    """One entry of this client, one of another, an invalid one, and one whose key fails."""
    ours = _read(REQUEST)["domains"][0]
    theirs = {"sign_domain": "example.net", "selector": "sample0001"}
    invalid = {"sign_domain": "example.org", "selector": "s1", "key_len": 4096}
    failing = {"sign_domain": "example.edu", "selector": "s1", "key_len": 2048}
    register(ours)
    register(theirs, token=get_token(other_credentials))
    short_keys = {1024: fixed_keys[1024]}
    app = create_app(store, clock=clock, make_key=short_keys.__getitem__)
    return _post(app, token, ours, theirs, invalid, failing)


@pytest.mark.interface("2.1", "access_token")
@pytest.mark.interface("2.2", "error")
@pytest.mark.interface("2.4", "result", "code", "message", "default", "enable", "setting_values")
@pytest.mark.interface("2.4", "value", "regist_date")
@pytest.mark.interface("4.1", "success")
@pytest.mark.interface("4.2", "success", "bad-request", "codes", "counts", "created")
@pytest.mark.interface("4.3", "items")
@pytest.mark.interface("5.2", "expired")
@pytest.mark.interface("7.2", "401", "403")
@pytest.mark.interface("7.3", "500")
@pytest.mark.usefixtures("store")  # of each kind
@pytest.mark.parametrize("name", ANSWERS)
def test_the_service_answers_as_the_fixture_shows(name, request):
    answer: Result = request.getfixturevalue(f"answer_{name.replace('-', '_')}")
    assert answer.status_code == STATUSES[name]
    assert _outline(answer.json) == _outline(_read(name))


@pytest.mark.interface("2.3", "domains", "several")
def test_the_items_repeat_what_the_request_states(answer_register_created):
    stated = _read(REQUEST)["domains"]
    for entry, item in zip(stated, answer_register_created.json["items"], strict=True):
        assert item["result"]["code"] == "201"
        assert item.items() >= entry.items()
