"""The schema of spec files accepts what the loader accepts, and as little else as it can."""

from __future__ import annotations

import json
import re

import pytest

from dkimctl.errors import InputError, Problem
from dkimctl.settings.schemas import Schema, read_schema
from dkimctl.specs.fields import ENTRY_FIELDS
from dkimctl.specs.loading import load_specs
from documents import ROOT
from editors import accepts
from schema_cases import MISTAKES, VALID
from schema_limits import SPECS, are_beyond

FIXTURES = sorted((ROOT / "tests" / "fixtures" / "specs").iterdir())
SCHEMA = json.loads(read_schema(Schema.SPECS))


def problems(data: bytes) -> tuple[Problem, ...]:
    try:
        load_specs(data, "f.yaml")
    except InputError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_it_refuses_what_the_loader_refuses_unless_no_schema_could(path):
    found = problems(path.read_bytes())
    assert found
    assert not accepts(Schema.SPECS, path.read_bytes()) or are_beyond(SPECS, found)


@pytest.mark.parametrize("limit", SPECS, ids=lambda limit: limit.problem)
def test_what_no_schema_could_refuse_is_accepted(limit):
    found = problems(limit.example.encode())
    assert found
    assert all(re.search(limit.problem, problem.message) for problem in found)
    assert accepts(Schema.SPECS, limit.example.encode())


@pytest.mark.parametrize("text", VALID[Schema.SPECS])
def test_it_accepts_what_the_loader_accepts(text):
    assert problems(text.encode()) == ()
    assert accepts(Schema.SPECS, text.encode())


@pytest.mark.parametrize("text", MISTAKES[Schema.SPECS])
def test_common_mistakes_are_refused_by_both(text):
    assert problems(text.encode())
    assert not accepts(Schema.SPECS, text.encode())


def test_it_has_the_fields_of_an_entry():
    definitions = SCHEMA["$defs"]
    assert [*definitions["fields"]["properties"]] == [*ENTRY_FIELDS]
    of_one_key = {"sign_domain", "selector", "replaces"}
    assert {*definitions["defaults"]["properties"]} == ENTRY_FIELDS.keys() - of_one_key
    assert all("description" in definitions[field] for field in ENTRY_FIELDS)
