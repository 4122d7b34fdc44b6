"""The service answers like tests/fixtures/api, which the client's tests read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials, add_delivery

FOLDER = Path(__file__).parents[2] / "fixtures" / "api"
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


def _outline(value, name=""):
    """The value with types, and with the pattern instead of each text that may differ."""
    if isinstance(value, dict):
        return {key: _outline(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_outline(inner) for inner in value]
    if name in FREE and re.fullmatch(FREE[name], value):
        return FREE[name]
    return type(value), value  # as 1, 1.0 and True are equal


@pytest.mark.interface("2.1", "access_token")
@pytest.mark.interface("2.2", "error")
@pytest.mark.interface("2.3", "domains", "several")
@pytest.mark.interface("2.4", "result", "code", "message", "default", "enable", "setting_values")
@pytest.mark.interface("2.4", "value", "regist_date")
@pytest.mark.interface("4.1", "success")
@pytest.mark.interface("4.2", "success", "bad-request", "codes", "counts", "created")
@pytest.mark.interface("4.3", "items")
@pytest.mark.interface("5.2", "expired")
@pytest.mark.interface("7.2", "401", "403")
@pytest.mark.interface("7.3", "500")
def test_the_service_answers_as_the_fixtures_show(
    client, store, clock, fixed_keys, register, request_token, get_token, credentials,
    other_credentials,
):  # fmt: skip
    token = get_token(credentials)
    headers = {"Authorization": f"Bearer {token}"}

    def post(*entries, **settings):
        app = create_app(store, **{"clock": clock, **settings})
        body = {"domains": entries}
        return DescribedClient(app).simulate_post("/domain/dkim", json=body, headers=headers)

    def broken_clock():
        raise OSError

    add_delivery(store, credentials.client_id, "123")
    theirs = {"sign_domain": "example.net", "selector": "sample0001"}
    register(theirs, token=get_token(other_credentials))
    request = (FOLDER / "register-request.json").read_bytes()
    mixed = (
        json.loads(request)["domains"][0],
        theirs,
        {"sign_domain": "example.org", "selector": "s1", "key_len": 4096},
        {"sign_domain": "example.edu", "selector": "s1", "key_len": 2048},
    )
    short_keys = {1024: fixed_keys[1024]}
    answers = {
        "token": (200, request_token(credentials)),
        "invalid-client": (400, request_token(ClientCredentials("unknown", "secret"))),
        "unauthorized": (401, client.simulate_post("/domain/dkim")),
        "send-cancelled": (200, client.simulate_delete("/send/123", headers=headers)),
        "register-created": (
            200, client.simulate_post("/domain/dkim", body=request, headers=headers)
        ),
        "register-refused": (400, post()),
        "register-failed": (500, post(clock=broken_clock)),
        "register-mixed": (200, post(*mixed, make_key=short_keys.__getitem__)),
    }  # fmt: skip
    clock.now += 3600
    answers["forbidden"] = (403, post())
    assert {path.stem for path in FOLDER.iterdir()} == {*answers, "register-request"}
    for name, (status, answer) in answers.items():
        shown = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        assert (name, answer.status_code) == (name, status)
        assert _outline(answer.json) == _outline(shown)
