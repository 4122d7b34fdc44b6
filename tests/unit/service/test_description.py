"""The OpenAPI description says what the service does.

Beside these tests, DescribedClient holds all answers of the service's tests against it.
"""

from __future__ import annotations

import inspect
import re

import falcon
import falcon.inspect
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from description import (
    assert_valid,
    description,
    operations,
    resolve,
)
from dkimctl.service import app as app_module
from dkimctl.service import clients
from dkimctl.service import registrations as validation
from dkimctl.service.clients import TOKEN_LIFETIME
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


def test_the_examples_of_registrations_are_accepted_by_the_service():
    content = operations()["POST", "/domain/dkim"]["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        for entry in example["value"]["domains"]:
            assert isinstance(validation.validate_entry(entry), validation.Entry)


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
        (RESPONSES["TooLarge"]["description"], app_module._MAX_BODY),
        (RESPONSES["HeadTooLarge"]["description"], MAX_HEAD),
    ],
)  # fmt: skip
def test_texts_have_the_numbers_of_the_service(text, number):
    assert f"{number:,}" in re.findall(r"[0-9,]*[0-9]", text)
