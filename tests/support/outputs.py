"""Whether what a command printed as JSON is as its schema says, and has nothing more."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from dkimctl.cli.arguments import wants_json
from dkimctl.cli.completion.tree import describe
from dkimctl.cli.main import root_command
from dkimctl.render.output_schema import schema_of_output
from dkimctl.settings.schemas import Schema, read_schema

# These print JSON without being asked for it.
CREDENTIALS = ("service client create", "service client rotate-secret")
_JSON_LINES = re.compile(r" (?:--format[= ]|-\w*f ?)jsonl ")
_MOST = 50  # items of an output that are validated: all are made alike
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")


def assert_described(words: Sequence[object], out: str, err: str) -> None:
    """Check the streams of the command with these words, as far as they are JSON."""
    line = tuple(map(str, words))
    is_json = wants_json(line)
    if is_json and (last := err.rpartition("\n")[0].rpartition("\n")[2]).startswith("{"):
        _assert_valid("errors", json.loads(last))
    if _JSON_LINES.search(f" {' '.join(line)} "):
        items = [json.loads(one) for one in out.splitlines()[:_MOST]]
        more = {} if command_of(line) == "check-dns" else {"total": 0}
        _assert_valid(command_of(line), {"items": items, "count": 0, **more})
    elif out.startswith("{") and (is_json or command_of(line) in CREDENTIALS):
        _assert_valid(command_of(line), _shortened(json.loads(out)))


@cache
def command_of(words: tuple[str, ...]) -> str:
    """The name of the command, such as `service client list`."""
    commands, take_value = _tree()
    names, rest = [], iter(words)
    for word in rest:
        if word in take_value:
            next(rest, None)
        elif not word.startswith("-"):
            names.append(word)
    starts = (" ".join(names[:length]) for length in range(len(names), 0, -1))
    return next(start for start in starts if start in commands)


@cache
def _tree() -> tuple[set[str], set[str]]:
    """The names of all commands, and those of the options that take a value."""
    tree = describe(root_command())
    return {command.path for command in tree.commands}, set(tree.take_value)


def _assert_valid(output: str, document: object) -> None:
    errors = [
        f"{output}: {error.json_path}: {error.message}"
        for error in validator(output).iter_errors(document)
    ]
    assert not errors, errors[0]


@cache
def validator(output: str) -> Draft202012Validator:
    """One that accepts no fields that the schema does not describe."""
    schema = json.loads(read_schema(Schema.OUTPUT))
    strict = _without_more(schema_of_output(schema, output))
    return Draft202012Validator(strict, format_checker=_formats())


def _without_more(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_more(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("required"), list) else {}
    return {**more, **{key: _without_more(value) for key, value in schema.items()}}


def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    checker.checks("date-time")(lambda one: one is None or bool(_RFC_3339.fullmatch(one)))
    return checker


def _shortened(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value[:_MOST] if isinstance(value, list) else value for key, value in document.items()
    }
