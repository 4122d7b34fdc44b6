"""The schema of the config file accepts what the loader accepts, and little else; modelines."""

from __future__ import annotations

import json
import re

import pytest

from configs import read_config
from dkimctl.errors import InputError
from dkimctl.settings.dns_targets import DEFAULT_TTL, DnsTarget
from dkimctl.settings.notices import NoticeSettings
from dkimctl.settings.profile import DEFAULT_PROFILE, Profile
from dkimctl.settings.rotation import RotationSettings
from dkimctl.settings.schemas import Schema, modeline, read_schema, schema_url
from dkimctl.settings.values import CHECKS, SANDBOX_FIXED
from dkimctl.text.durations import parse_duration
from documents import ROOT
from editors import accepts
from schema_cases import MISTAKES, VALID
from schema_limits import CONFIG, are_beyond

SCHEMA = json.loads(read_schema(Schema.CONFIG))
DEFINITIONS = SCHEMA["$defs"]


@pytest.fixture
def problems(tmp_path):
    """The problems of a config file with this text."""

    def problems(text: str):
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            read_config(path)
        except InputError as error:
            return error.problems
        return ()

    return problems


@pytest.mark.parametrize("limit", CONFIG, ids=lambda limit: f"{limit.reason}: {limit.problem}")
def test_what_no_schema_could_refuse_is_accepted(limit, problems):
    found = problems(limit.example)
    assert found
    assert all(re.search(limit.problem, problem.message) for problem in found)
    assert are_beyond(CONFIG, found)
    assert accepts(Schema.CONFIG, limit.example.encode())


@pytest.mark.parametrize("text", VALID[Schema.CONFIG])
def test_it_accepts_what_the_loader_accepts(text, problems):
    assert problems(text) == ()
    assert accepts(Schema.CONFIG, text.encode())


@pytest.mark.parametrize("text", MISTAKES[Schema.CONFIG])
def test_common_mistakes_are_refused_by_both(text, problems):
    assert problems(text)
    assert not accepts(Schema.CONFIG, text.encode())


def test_it_has_the_keys_of_each_section():
    sections = SCHEMA["properties"]
    profile = {*DEFINITIONS["profile"]["properties"]}
    assert profile == {*CHECKS, "defaults"}
    assert {*DEFINITIONS["sandbox"]["properties"]} == profile - SANDBOX_FIXED.keys()
    assert {*sections["rotation"]["properties"]} == {*RotationSettings._fields}
    assert {*sections["notify"]["properties"]} == {*NoticeSettings._fields}
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert {*DEFINITIONS["target"]["properties"]} == keys


def test_its_defaults_are_those_of_the_code():
    default = Profile("x")._asdict()
    for key, schema in DEFINITIONS["profile"]["properties"].items():
        stated = DEFINITIONS.get(key, schema).get("default")
        if key in ("timeout", "max_wait"):
            assert parse_duration(stated) == default[key]
        elif key != "defaults":
            assert stated == default[key]
    rotation, sections = RotationSettings(), SCHEMA["properties"]
    for key, schema in sections["rotation"]["properties"].items():
        value = getattr(rotation, key)
        stated = schema["default"]
        assert (stated if key == "limit" else parse_duration(stated)) == (
            value if key == "limit" else value.total_seconds()
        )
    recheck = sections["notify"]["properties"]["recheck"]["default"]
    assert parse_duration(recheck) == NoticeSettings().recheck.total_seconds()
    assert DEFINITIONS["target"]["properties"]["ttl"]["default"] == DEFAULT_TTL
    assert sections["default_profile"]["default"] == DEFAULT_PROFILE


def test_the_defaults_of_a_profile_are_those_of_a_spec_file():
    specs = json.loads(read_schema(Schema.SPECS))["$defs"]
    for name in ("key_len", "start_date", "default", "enable"):
        assert DEFINITIONS[name] == specs[name]
    assert DEFINITIONS["defaults"]["properties"] == specs["defaults"]["properties"]


@pytest.mark.parametrize(
    ("name", "schema"),
    [("domains.example.yaml", Schema.SPECS), ("config.example.yaml", Schema.CONFIG)],
)
def test_the_examples_name_their_schema_and_agree_with_it(name, schema):
    data = (ROOT / name).read_bytes()
    assert data.decode().startswith(modeline(schema))
    assert accepts(schema, data)


@pytest.mark.parametrize("schema", Schema)
def test_a_schema_is_published_where_it_says(schema):
    url = schema_url(schema)
    document = json.loads(read_schema(schema))
    assert document["$id"] == url
    path = ROOT / url.removeprefix("https://raw.githubusercontent.com/dkimctl/dkimctl/main/")
    assert json.loads(path.read_text(encoding="utf-8")) == document
