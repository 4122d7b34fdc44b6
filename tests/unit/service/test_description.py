"""The service answers as its OpenAPI description, and the fixtures that the client reads, show.

Beside these tests, DescribedClient holds all answers of the service against the description.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import falcon
import falcon.inspect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from description import DescribedClient, assert_valid, description, operations, resolve
from dkimctl.service import app as app_module
from dkimctl.service import clients, resources
from dkimctl.service import registrations as validation
from dkimctl.service.app import create_app
from dkimctl.service.clients import (
    TOKEN_LIFETIME,
    ClientCredentials,
    add_delivery,
    create_client,
    issue_token,
)
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import KEY_LENGTHS
from dkimctl.service.resources import read_description
from dkimctl.service.server import MAX_HEAD

OPERATIONAL = {"/openapi.yaml", "/healthz", "/readyz"}  # not of the interface
MAX_DOMAINS = inspect.signature(app_module.create_app).parameters["max_domains"].default
SCHEMAS = description()["components"]["schemas"]
FIELDS = SCHEMAS["RegistrationEntry"]["properties"]
RESPONSES = description()["components"]["responses"]


def test_it_is_valid_openapi():
    assert description()["openapi"].startswith("3.1.")
    errors = OpenAPIV31SpecValidator(description()).iter_errors()
    assert [error.message for error in errors] == []


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer unknown"}])
def test_it_is_served_without_a_token(client, headers):
    result = client.simulate_get("/openapi.yaml", headers=headers)
    assert result.status_code == 200
    assert result.headers["Content-Type"] == "application/yaml"
    assert result.content == read_description()
    assert client.simulate_post("/openapi.yaml").status_code == 405


def test_it_describes_the_routes_of_the_service_and_no_others(client):
    routes = falcon.inspect.inspect_routes(client.app)
    assert operations().keys() == {
        (method.method, route.path)
        for route in routes
        if route.path not in OPERATIONAL
        for method in route.methods
        if not method.internal
    }


def test_the_token_endpoint_takes_basic_and_all_others_a_token():
    schemes = description()["components"]["securitySchemes"]
    for (_, path), operation in operations().items():
        required = operation.get("security", description()["security"])
        names = [name for alternative in required for name in alternative]
        assert names == (["basic"] if path == "/oauth2/token" else ["clientCredentials", "bearer"])
        assert {*names} <= {*schemes}


def _examples():
    """Each example with its schema."""
    for operation in operations().values():
        for parameter in operation.get("parameters", []):
            yield parameter["schema"], parameter["example"]
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for part in [*bodies, *map(resolve, operation["responses"].values())]:
            for header in map(resolve, part.get("headers", {}).values()):
                yield header["schema"], header.get("example", header["schema"].get("const"))
            for content in part.get("content", {}).values():
                named = content.get("examples", {"": {"value": content.get("example")}})
                yield from ((content["schema"], example["value"]) for example in named.values())
    for field in FIELDS.values():
        yield from ((field, example) for example in field.get("examples", []))
        if "default" in field:
            yield field, field["default"]


def test_every_body_and_header_has_examples_and_they_are_valid():
    examples = [*_examples()]
    assert len(examples) >= 40
    for schema, example in examples:
        assert_valid(example, schema)


def test_it_has_the_limits_of_the_service():
    assert FIELDS.keys() == validation._RULES.keys()
    assert FIELDS["key_len"]["enum"] == [*KEY_LENGTHS]
    assert FIELDS["sign_domain"]["pattern"] == f"^{validation._DOMAIN.pattern}$"
    assert FIELDS["selector"]["pattern"] == f"^{validation._SELECTOR.pattern}$"
    assert FIELDS["start_date"]["pattern"] == f"^{validation._DATE_TIME.pattern}$"
    left = validation._FQDN_OCTETS - len("._domainkey.")
    assert FIELDS["sign_domain"]["maxLength"] == left - len("s")
    assert FIELDS["selector"]["maxLength"] == left - len("a.b")
    limit = validation._INTEGER_LIMIT
    assert (FIELDS["default"]["minimum"], FIELDS["default"]["maximum"]) == (1 - limit, limit - 1)
    domains = SCHEMAS["RegistrationRequest"]["properties"]["domains"]
    assert (domains["minItems"], domains["maxItems"]) == (1, MAX_DOMAINS)
    assert SCHEMAS["Token"]["properties"]["expires_in"]["const"] == TOKEN_LIFETIME
    (parameter,) = operations()["DELETE", "/send/{delivery_id}"]["parameters"]
    assert parameter["schema"]["pattern"] == f"^{clients._DELIVERY_ID.pattern}$"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (SCHEMAS["RegistrationEntry"]["description"], validation._FQDN_OCTETS),
        (SCHEMAS["RegistrationEntry"]["description"], validation._GENERATED_SELECTOR_OCTETS),
        (SCHEMAS["RegistrationRequest"]["properties"]["domains"]["description"],
         MAX_DOMAINS),
        (RESPONSES["TooLarge"]["description"], resources._MAX_BODY),
        (RESPONSES["HeadTooLarge"]["description"], MAX_HEAD),
    ],
)  # fmt: skip
def test_texts_have_the_numbers_of_the_service(text, number):
    assert f"{number:,}" in re.findall(r"[0-9,]*[0-9]", text)


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


NOW = 1625097600.0

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def post(tmp_path_factory, fixed_keys):
    path: Path = tmp_path_factory.mktemp("fuzz") / "service.db"
    store = open_store(path)
    token = issue_token(store, create_client(store).client_id, NOW)
    app = create_app(store, clock=lambda: NOW, make_key=fixed_keys.__getitem__)
    client = DescribedClient(app, headers={"Authorization": f"Bearer {token}"})
    yield lambda body: client.simulate_post("/domain/dkim", body=body)
    store.close()


@given(
    st.binary(max_size=200)
    | (json_values | st.fixed_dictionaries({"domains": json_values}))
    .map(json.dumps)
    .map(str.encode)
)
@settings(max_examples=200, deadline=None)
def test_anything(post, body):
    result = post(body)
    assert result.status_code in {200, 400}
    assert {*result.json} - {"message"} == {"items", "count", "total"}
