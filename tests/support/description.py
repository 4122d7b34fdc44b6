"""The OpenAPI description of the service, and a client that holds every answer against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

import yaml
from falcon.testing import Result, TestClient
from jsonschema import Draft202012Validator, FormatChecker

from dkimctl.service.resources import read_description

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class DescribedClient(TestClient):
    """A test client that fails on an answer which the description does not allow."""

    def simulate_request(self, method: str = "GET", path: str = "/", **options: Any) -> Result:
        result = super().simulate_request(method, path, **options)
        if operation := operation_of(method, path):
            assert_described(operation, result.status_code, result.headers, result.json)
        return result


@cache
def description() -> dict[str, Any]:
    return yaml.safe_load(read_description())


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    """What is described, by method in upper case and path."""
    return {
        (method.upper(), path): item[method]
        for path, item in description()["paths"].items()
        for method in _METHODS
        if method in item
    }


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """What is described for a request, if anything is."""
    for (described, template), operation in operations().items():
        if described == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return operation
    return None


def assert_described(
    operation: Mapping[str, Any], status: int, headers: Mapping[str, str], body: object
) -> None:
    """Fail unless the answer has a described status, its headers, and a body without more."""
    assert str(status) in operation["responses"], f"status {status} is not described"
    response = resolve(operation["responses"][str(status)])
    for name, reference in response.get("headers", {}).items():
        assert name in headers, f"there is no {name}"
        schema = resolve(reference)["schema"]
        is_number = schema.get("type") == "integer"
        assert_valid(int(headers[name]) if is_number else headers[name], schema)
    content_type = headers["Content-Type"].partition(";")[0]
    assert content_type in response["content"], f"{content_type} is not described"
    assert_valid(body, response["content"][content_type]["schema"])


def assert_valid(value: object, schema: Mapping[str, Any]) -> None:
    """Fail unless `value` matches, without fields that the schema does not name."""
    document = {**_without_more(), **schema}
    Draft202012Validator(document, format_checker=FormatChecker()).validate(value)


def resolve(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node, or what its $ref refers to."""
    while "$ref" in node:
        target: Any = description()
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


@cache
def _without_more() -> dict[str, Any]:
    """The description with no other fields allowed, in any object."""
    document = deepcopy(description())
    nodes = [document["components"]["schemas"]]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict) and node.get("type") == "object":
            node["additionalProperties"] = False
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return document
