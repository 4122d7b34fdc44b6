"""The JSON Schemas have the fields and defaults of the loaders, and accept what the docs show."""

from __future__ import annotations

import json
import re
from typing import ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator

from configs import read_config
from dkimctl.cli.commands.completion import Schema
from dkimctl.errors import InputError
from dkimctl.settings.config import DEFAULT_TTL, DnsTarget, NoticeSettings
from dkimctl.settings.profile import DEFAULT_PROFILE, Profile
from dkimctl.settings.rotation import Pool, RotationSettings
from dkimctl.settings.values import CHECKS, SANDBOX_FIXED
from dkimctl.specs.entries import ENTRY_FIELDS
from dkimctl.text import parse_duration
from documents import ROOT, example
from spec_files import load_specs

BASE = "https://raw.githubusercontent.com/dkimctl/dkimctl/main/"
PATHS = {
    Schema.SPECS: "dkimctl/specs/schema.json", Schema.CONFIG: "dkimctl/settings/schema.json"
}  # fmt: skip
SCHEMAS = {schema: json.loads((ROOT / path).read_text()) for schema, path in PATHS.items()}
CONFIG = SCHEMAS[Schema.CONFIG]
# Each is refused by the schema and by the loader.
MISTAKES = {
    Schema.SPECS: [
        "- https://example.com",
        "- {sign_domain: example.com, selecter: s}",
        "- {sign_domain: example.com, start_date: 2027-07-01}",
        "- {sign_domain: example.com, default: -1}",
        "- {sign_domain: example.com, enable: 'no'}",
        "- {sign_domain: example.com, replaces: s1}",
    ],
    Schema.CONFIG: [
        "profile: {}",
        "profiles: {'a b': {}}",
        "profiles: {x: {client_secret: hunter2}}",
        "profiles: {x: {batch_size: 0}}",
        "profiles: {x: {defaults: {selector: s}}}",
        "profiles: {sandbox: {client_id: me}}",
        "dns: [{provider: route53}]",
        "dns: [{provider: octodns, class: a.B, settings: {token: hunter2}}]",
        "rotation: {max_age: 180}",
        "delegation: [{domains: [a.example], selectors: a, count: 2, ns: [ns1.example.com]}]",
        "delegation: [{domains: [a.example], selectors: 'a{n}', count: 2}]",
        "delegation: [{domains: [a.example], selectors: 'a{n}', count: 2, target: a.example}]",
        "notify: {command: []}",
    ],
}


class Loader(yaml.SafeLoader):
    """Takes dates as text, as editors do."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in kinds if not tag.endswith("timestamp")]
        for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def accepts(schema: Schema, text: str) -> bool:
    document = yaml.load(text, Loader)
    return Draft202012Validator(SCHEMAS[schema]).is_valid(document)


def test_a_spec_file_has_the_fields_of_an_entry():
    definitions = SCHEMAS[Schema.SPECS]["$defs"]
    assert [*definitions["fields"]["properties"]] == [*ENTRY_FIELDS]
    of_one_key = {"sign_domain", "selector", "replaces"}
    assert {*definitions["defaults"]["properties"]} == ENTRY_FIELDS.keys() - of_one_key
    for name in (*definitions["defaults"]["properties"], "defaults"):
        ours, theirs = CONFIG["$defs"][name], definitions[name]
        assert ours | {"description": ""} == theirs | {"description": ""}


def test_a_config_file_has_the_keys_of_each_section():
    sections, definitions = CONFIG["properties"], CONFIG["$defs"]
    profile = {*definitions["profile"]["properties"]}
    assert profile == {*CHECKS, "defaults"}
    assert {*definitions["sandbox"]["properties"]} == profile - SANDBOX_FIXED.keys()
    assert {*definitions["policy"]["properties"]} == {*RotationSettings._fields}
    assert {*sections["notify"]["properties"]} == {*NoticeSettings._fields}
    assert {*definitions["pool"]["properties"]} == {*Pool._fields}
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert {*definitions["target"]["properties"]} == keys


def test_its_defaults_are_those_of_the_code():
    default = Profile("x")._asdict()
    for key in CHECKS:
        stated = CONFIG["$defs"].get(key, {}).get("default")
        if key in ("timeout", "max_wait"):
            stated = parse_duration(stated)
        assert stated == default[key]
    sections = CONFIG["properties"]
    for key, schema in CONFIG["$defs"]["policy"]["properties"].items():
        value, stated = getattr(RotationSettings(), key), schema.get("default")
        assert stated is None or value == stated or value.total_seconds() == parse_duration(stated)
    recheck = sections["notify"]["properties"]["recheck"]["default"]
    assert parse_duration(recheck) == NoticeSettings().recheck.total_seconds()
    assert CONFIG["$defs"]["target"]["properties"]["ttl"]["default"] == DEFAULT_TTL
    assert sections["default_profile"]["default"] == DEFAULT_PROFILE


@pytest.mark.parametrize("document", ["config.example.yaml", "docs/configuration.md"])
def test_each_key_of_a_section_is_explained(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    definitions = CONFIG["$defs"]
    for section in (definitions["policy"], CONFIG["properties"]["notify"], definitions["pool"]):
        for key in section["properties"]:
            assert re.search(rf"^(\| `{key}` \||[# -]*{key}: )", text, re.MULTILINE), key


@pytest.mark.parametrize("schema", Schema)
def test_the_example_names_its_schema_and_agrees_with_it(schema):
    Draft202012Validator.check_schema(SCHEMAS[schema])
    assert SCHEMAS[schema]["$id"] == BASE + PATHS[schema]
    name = {Schema.SPECS: "domains.example.yaml", Schema.CONFIG: "config.example.yaml"}[schema]
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.startswith(f"# yaml-language-server: $schema={BASE}{PATHS[schema]}\n")
    assert accepts(schema, text)
    assert accepts(Schema.SPECS, example("$schema=https", "yaml"))


@pytest.mark.parametrize(
    ("schema", "text"), [(schema, text) for schema in Schema for text in MISTAKES[schema]]
)
def test_common_mistakes_are_refused_by_both(tmp_path, schema, text):
    assert not accepts(schema, text)
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        load_specs(text.encode(), "f.yaml") if schema is Schema.SPECS else read_config(path)
