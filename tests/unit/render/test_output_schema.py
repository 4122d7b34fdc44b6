"""The schema of the JSON that commands print; tests of all commands check what they print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum

import pytest
from jsonschema import Draft202012Validator

from dkimctl.cli.doctor import findings
from dkimctl.cli.main import root_command
from dkimctl.dns.verdicts import Urgency, Verdict
from dkimctl.handoff.providers import ValueForm
from dkimctl.handoff.sheet import Timing, Trouble
from dkimctl.mail.report import Alignment, MailVerdict
from dkimctl.models.key_status import KeyStage, NextAction
from dkimctl.models.registration import Outcome
from dkimctl.publishing import items
from dkimctl.render.output_schema import described_outputs, schema_of_output
from dkimctl.rotation.run import report
from dkimctl.service.clients import ClientState
from dkimctl.settings.schemas import Schema, read_schema
from dkimctl.settings.sources import SourceKind
from outputs import CREDENTIALS, assert_described, command_of

SCHEMA = json.loads(read_schema(Schema.OUTPUT))
OUTPUTS = described_outputs(SCHEMA)


def commands(command, words=()) -> Iterator[tuple[str, list[object]]]:
    """The commands of the tree, and the formats of each."""
    formats = (one.type.choices for one in command.params if "--format" in one.opts)
    yield " ".join(words), [*next(formats, ())]
    for name in getattr(command, "commands", ()):
        yield from commands(command.get_command(None, name), (*words, name))


def test_every_command_that_prints_json_is_described_and_no_other():
    with_json = {name for name, formats in commands(root_command()) if "json" in formats}
    assert {*OUTPUTS} == {*with_json, *CREDENTIALS, "errors"}
    assert len(with_json) > 10


@pytest.mark.parametrize("schema", Schema)
def test_each_is_a_schema(schema):
    Draft202012Validator.check_schema(json.loads(read_schema(schema)))


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_schema_of_an_output_is_complete_alone(output):
    schema = schema_of_output(SCHEMA, output)
    Draft202012Validator.check_schema(schema)
    assert not Draft202012Validator(schema).is_valid({})
    text = json.dumps(schema)
    assert all(f"/{name}".replace(" ", "%20") in text for name in schema["$defs"])


def test_every_field_is_explained():
    unexplained = [path for path, field in _fields(SCHEMA["$defs"]) if "description" not in field]
    assert unexplained == []


def _fields(schema, path="") -> Iterator[tuple[str, dict]]:
    """The schemas of all fields; where one refers to another, that one."""
    if isinstance(schema, list):
        for part in schema:
            yield from _fields(part, path)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        yield from _fields(value, f"{path}/{key}")
        if key == "properties":
            for name, field in value.items():
                shared = field.get("$ref", "").removeprefix("#/$defs/").replace("%20", " ")
                yield f"{path}/{name}", {**SCHEMA["$defs"].get(shared, {}), **field}


def enum(*path: str) -> list[object]:
    schema = SCHEMA["$defs"]
    for step in path:
        schema = schema[step]
    return schema["enum"]


def in_list(output: str, *names: str) -> tuple[str, ...]:
    """The path of a field in the lists of an output."""
    steps = (step for name in names for step in (name, "items", "properties"))
    return (output, "properties", *steps)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("outcome",), Outcome),
        (("verdict",), Verdict),
        (("stage",), KeyStage),
        (("next",), NextAction),
        (("check", "properties", "urgency"), Urgency),
        (("urgency",), [*filter(None, Urgency), None]),
        (("change", "properties", "action"), items.Step),
        (("task", "properties", "step"), report.Step),
        (("task", "properties", "state"), report.State),
        (("finding", "properties", "state"), findings.State),
        (("mail", "properties", "verdict"), MailVerdict),
        (("signature", "properties", "verdict"), MailVerdict),
        (("signature", "properties", "alignment"), Alignment),
        (("source", "properties", "kind"), SourceKind),
        ((*in_list("service client list", "clients"), "state"), ClientState),
        ((*in_list("handoff", "zones"), "trouble"), [*filter(None, Trouble), None]),
        ((*in_list("handoff", "zones", "records"), "enter"), ValueForm),
        ((*in_list("handoff", "zones", "records"), "timing"), Timing),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_its_words_are_those_of_the_code(path, words: type[StrEnum]):
    assert enum(*path) == [*words]


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        (["list", "--format", "json"], '{"items": [], "count": 0, "more": 1}', ""),
        (["list", "-fjson"], '{"items": []}', ""),
        (["list", "--format=json"], "", '{"errors": [{"code": "no"}]}\n'),
        (["-p", "a", "rotate", "-v", "run", "-f", "json"], '{"items": [], "count": 0}', ""),
        (["check-dns", "--format", "jsonl"], '{"sign_domain": "a.example"}\n', ""),
        (["service", "client", "create"], '{"client_id": "a"}', ""),
        (["publish", "-f", "json"], '{"items": [{"target": "a"}], "count": 1}', ""),
    ],
)
def test_an_output_that_is_not_described_fails_its_test(words, out, err):
    assert_described(["list", "--format", "json"], '{"items": [], "count": 0}', "")
    assert_described(["list", "--format", "table"], out, err)
    with pytest.raises(AssertionError, match=command_of(tuple(words)) if out else "errors"):
        assert_described(words, out, err)
