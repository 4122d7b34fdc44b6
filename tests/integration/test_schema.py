"""`dkimctl schema`, and files that name their schema."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from dkimctl.settings.schemas import Schema, modeline, read_schema
from documents import example
from editors import accepts, matches
from schema_cases import MISTAKES, VALID

IN_JAVASCRIPT = """
const [patterns, texts] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const found = patterns.map((pattern) => {
  const expression = new RegExp(pattern, "u");
  return texts.map((text) => expression.test(text));
});
console.log(JSON.stringify(found));
"""


@pytest.mark.parametrize("schema", Schema)
def test_it_prints_each_schema(cli, schema):
    done = cli("schema", schema)
    assert (done.status, done.err) == (0, "")
    assert done.json == json.loads(read_schema(schema))


def test_the_schema_of_a_command_checks_its_output_alone(cli):
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, key_len: 2048}\n")
    assert cli("register", "--sandbox", "one.yaml").status == 0
    schema = cli("schema", "output", "rotate", "status").json
    validator = Draft202012Validator(schema)
    output = cli("rotate", "status", "--sandbox", "--format", "json").json
    assert output["count"] == 1
    validator.validate(output)
    del output["items"][0]["stage"]
    assert not validator.is_valid(output)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["output", "rotate", "statsu"], 'the output of "rotate statsu"', "rotate status?"),
        (["output", "token"], 'the output of "token"', "known outputs: register, "),
        (["config", "list"], "config takes no command", "`dkimctl schema config`"),
        (["spec"], "invalid value for 'schema'", ""),
        ([], "missing", ""),
    ],
)
def test_what_has_no_schema_is_a_usage_error(cli, words, message, hint):
    done = cli("schema", *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err.lower()
    assert hint in done.err


def test_the_files_of_init_name_their_schema_and_agree_with_it(cli):
    urls = ["--auth-url", "https://auth.example.com", "--base-url", "https://api.example.com"]
    words = ["--client-id", "me", "--domain", "example.com", "--dns", "hand"]
    done = cli("init", "--config", "config.yaml", "--output", "domains.yaml", *urls, *words)
    assert done.status == 0, done.err
    for name, schema in (("config.yaml", Schema.CONFIG), ("domains.yaml", Schema.SPECS)):
        data = (cli.home / name).read_bytes()
        assert data.decode().startswith(modeline(schema))
        assert accepts(schema, data)
    assert cli("register", "--dry-run", "--config", "config.yaml", "domains.yaml").status == 0


def test_the_clients_of_the_service_are_printed_as_json(cli):
    data = ("--data", "service.db")
    for name in ("one", "two"):
        assert cli("service", "client", "create", name, *data).status == 0
    assert cli("service", "client", "disable", "one", *data).status == 0
    clients = cli("service", "client", "list", "--format", "json", *data).json["clients"]
    found = {client["client_id"]: client["state"] for client in clients}
    assert found == {"one": "disabled", "two": "active"}


def test_a_spec_file_is_checked_in_ci(cli, shell, needs_tool):
    needs_tool("check-jsonschema")
    block = example("--schemafile specs.schema.json domains.yaml")
    cli.write("domains.yaml", example("$schema=https", "yaml"))
    shell(block, {})
    cli.write("domains.yaml", "- example.com\n- {sign_domain: example.net, selecter: s1}\n")
    with pytest.raises(AssertionError, match="selecter"):
        shell(block, {})


def test_an_output_is_checked_in_ci(cli, shell, needs_tool):
    needs_tool("check-jsonschema")
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, enable: false}\n")
    assert cli("register", "--sandbox", "one.yaml").status == 0
    done = shell(example("--schemafile keys.schema.json"), {"DKIMCTL_PROFILE": "sandbox"})
    assert '"errors"' in done.stdout


@pytest.mark.parametrize("schema", [Schema.SPECS, Schema.CONFIG])
def test_another_validator_agrees(cli, needs_tool, schema):
    names = {}
    for texts, is_valid in ((VALID[schema], True), (MISTAKES[schema], False)):
        for text in texts:
            names[cli.write(f"{len(names)}.yaml", text)] = is_valid
    assert cli("schema", schema).status == 0
    path = cli.write("schema.json", cli("schema", schema).out)
    done = subprocess.run(
        [needs_tool("check-jsonschema"), "--output-format", "json", "--schemafile", path, *names],
        cwd=cli.home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    refused = {error["filename"] for error in [*found["errors"], *found["parse_errors"]]}
    assert refused == {name for name, is_valid in names.items() if not is_valid}


def test_patterns_mean_the_same_in_javascript(needs_tool):
    patterns = sorted(
        {one for schema in Schema for one in _patterns(json.loads(read_schema(schema)))}
    )
    texts = [text for cases in (VALID, MISTAKES) for texts in cases.values() for text in texts]
    words = sorted(
        {word.strip("'\"") for text in texts for word in [text, *re.split(r"[ ,{}\[\]]", text)]}
    )
    done = subprocess.run(
        [needs_tool("node"), "-e", IN_JAVASCRIPT], input=json.dumps([patterns, words]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found == [[matches(pattern, word) for word in words] for pattern in patterns]
    assert len(patterns) > 20


def _patterns(schema) -> Iterator[str]:
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield from [value] if key == "pattern" else _patterns(value)
            yield from value if key == "patternProperties" else ()
