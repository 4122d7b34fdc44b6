"""The service answers as its OpenAPI description, and the fixtures that the client reads, show.

Beside these tests, DescribedClient holds all answers of the service against the description.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import falcon
import falcon.inspect
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from description import DescribedClient, assert_valid, description, operations, resolve
from dkimctl.service import clients, registrations, resources
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials, add_delivery
from dkimctl.service.key_pairs import KEY_LENGTHS
from dkimctl.service.resources import read_description
from dkimctl.service.server import MAX_HEAD

SCHEMAS = description()["components"]["schemas"]
FIELDS = SCHEMAS["RegistrationEntry"]["properties"]


def test_it_is_valid_openapi_and_served_without_a_token(client):
    assert description()["openapi"].startswith("3.1.")
    errors = OpenAPIV31SpecValidator(description()).iter_errors()
    assert [error.message for error in errors] == []
    result = client.simulate_get("/openapi.yaml")
    assert (result.status_code, result.headers["Content-Type"]) == (200, "application/yaml")
    assert result.content == read_description()


def test_it_describes_the_routes_of_the_service_and_their_credentials(client):
    routes = falcon.inspect.inspect_routes(client.app)
    assert operations().keys() == {
        (method.method, route.path)
        for route in routes
        if route.path not in ("/openapi.yaml", "/healthz", "/readyz")
        for method in route.methods
        if not method.internal
    }
    for (_, path), operation in operations().items():
        required = operation.get("security", description()["security"])
        names = [name for alternative in required for name in alternative]
        assert names == (["basic"] if path == "/oauth2/token" else ["clientCredentials", "bearer"])


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
    (delivery,) = operations()["DELETE", "/send/{delivery_id}"]["parameters"]
    for schema, pattern in (
        (FIELDS["sign_domain"], registrations._DOMAIN),
        (FIELDS["selector"], registrations._SELECTOR),
        (FIELDS["start_date"], registrations._DATE_TIME),
        (delivery["schema"], clients._DELIVERY_ID),
    ):
        assert schema["pattern"] == f"^{pattern.pattern}$"
    domains = SCHEMAS["RegistrationRequest"]["properties"]["domains"]
    most = inspect.signature(create_app).parameters["max_domains"].default
    left = registrations._FQDN_OCTETS - len("._domainkey.")
    for schema, name, value in (
        (FIELDS["key_len"], "enum", [*KEY_LENGTHS]),
        (FIELDS["sign_domain"], "maxLength", left - len("s")),
        (FIELDS["selector"], "maxLength", left - len("a.b")),
        (FIELDS["default"], "minimum", 1 - registrations._INTEGER_LIMIT),
        (FIELDS["default"], "maximum", registrations._INTEGER_LIMIT - 1),
        (domains, "maxItems", most),
        (SCHEMAS["Token"]["properties"]["expires_in"], "const", clients.TOKEN_LIFETIME),
    ):
        assert schema[name] == value
    responses = description()["components"]["responses"]
    for described, number in (
        (SCHEMAS["RegistrationEntry"], registrations._FQDN_OCTETS),
        (SCHEMAS["RegistrationEntry"], registrations._GENERATED_SELECTOR_OCTETS),
        (domains, most),
        (responses["TooLarge"], resources._MAX_BODY),
        (responses["HeadTooLarge"], MAX_HEAD),
    ):
        assert f"{number:,}" in re.findall(r"[0-9,]*[0-9]", described["description"])


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
