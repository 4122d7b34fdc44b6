"""`dkimctl schema`, and files that name their schema."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from dkimctl.settings.schemas import Schema, modeline, read_schema
from editors import accepts


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
