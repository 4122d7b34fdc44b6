"""What an editor makes of a YAML file with a JSON Schema.

yaml-language-server reads YAML 1.2 with the types of its core schema (YAML 1.2.2, section 10.3),
and patterns as JavaScript does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from dkimctl.settings.schemas import Schema, read_schema

_TAG = "tag:yaml.org,2002:"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
_TYPES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": rf"{_FLOAT}|\.(?:nan|NaN|NAN)",
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    yaml_implicit_resolvers: ClassVar[dict] = {}


for _name, _pattern in _TYPES.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), None)


class NotYaml(ValueError):
    """The editor shows an error whatever the schema says."""


def documents(data: bytes) -> list[Any]:
    """The values of the documents in a file; none if there are only comments.

    A mapping's keys are text, as in JSON. Raises NotYaml.
    """
    try:
        roots = list(yaml.compose_all(data.decode("utf-8-sig"), _Loader))
        return [_value(root) for root in roots if root is not None]
    except (UnicodeError, yaml.YAMLError, RecursionError) as error:
        raise NotYaml(str(error)) from None


def accepts(schema: Schema, data: bytes) -> bool:
    """Whether the editor shows no error."""
    try:
        return all(map(_validator(schema).is_valid, documents(data)))
    except NotYaml:
        return False


def matches(pattern: str, text: str) -> bool:
    """In JavaScript, $ is the very end of the text; in Python, a line break may follow."""
    return re.search(pattern.replace("$", r"\Z"), text) is not None


def _value(node: Any) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_value(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node)
    kind = node.tag.removeprefix(_TAG)
    if kind == "int":
        return _integer(node.value)
    if kind == "float":
        return float(re.sub(r"\.(?=inf|nan)", "", node.value.lower()))
    if kind == "bool":
        return node.value.lower() == "true"
    if kind in ("null", "str"):
        return None if kind == "null" else node.value
    raise NotYaml(f"the tag {node.tag} is not known")


def _mapping(node: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in node.value:
        text = key.value if isinstance(key, yaml.ScalarNode) else yaml.serialize(key)
        if text in mapping:
            raise NotYaml(f"the key {text} is there twice")
        mapping[text] = _value(value)
    return mapping


def _integer(text: str) -> float:
    """A number of JavaScript, which has no other integers."""
    return int(text, 0) if text[:2] in ("0o", "0x") else float(text)


@cache
def _validator(schema: Schema) -> Draft202012Validator:
    kind = validators.extend(Draft202012Validator, {"pattern": _pattern})
    return kind(json.loads(read_schema(schema)))


def _pattern(
    _validator: object, pattern: str, instance: object, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")
