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
from schema_limits import SPECS, are_beyond

FIXTURES = sorted((ROOT / "tests" / "fixtures" / "specs").iterdir())
SCHEMA = json.loads(read_schema(Schema.SPECS))
# What the loader accepts, in every way to write it.
VALID = (
    "[]",
    "domains: []",
    "domains: []\ndefaults: {}",
    "- example.com\n- EXAMPLE.NET.\n- 1.2.example",
    "- 日本語.jp\n- \uff22ücher\u3002example\n- xn--bcher-kva.example.net",
    f"- {'a.' * 119}ab.",
    *(f"- {{sign_domain: a.example, selector: {word}}}" for word in
      ("s1", "S.1", "on", "true", "20260101", "0123", "1e3", "1e-3", "0x1f", "1.5", "'null'")),
    *(f"- {{sign_domain: a.example, selector: s2, replaces: {word}}}" for word in
      ("k_1", "_x", "S1", "20260101", "true", "1.0")),
    *(f"- {{sign_domain: a.example, start_date: {date}}}" for date in
      ("2027-07-01T00:00+09:00", "2027-07-01T00:00:00Z", "'2028-02-29T23:59-00:00'")),
    "- {sign_domain: a.example, key_len: 1024, default: 999999999, enable: false}",
    '{"defaults": {"key_len": 2048, "enable": true},\t"domains": [{"sign_domain": "a.example"}]}',
)  # fmt: skip
# Common mistakes, each of which an editor shows.
MISTAKES = (
    "example.com",
    "defaults: {key_len: 2048}",
    "domain: [a.example]",
    "domains: a.example",
    "domains: []\ndefaults: {selector: s1}",
    *(f"- {entry}" for entry in
      ("localhost", "192.0.2.1", "2001:db8::1", "https://a.example/", "'*.a.example'",
       "me@a.example", "_dmarc.a.example", "a..example", "-a.example", "\u201ca.example\u201d",
       "a b.example", "a.é b", "12", "~",
       "[a.example]", "{selector: s1}", f"{'a' * 64}.example", f"{'a.' * 120}ab",
       '"a.example\\n"')),
    *(f"- {{sign_domain: a.example, {field}}}" for field in
      ("selecter: s1", "selector: s_1", "selector: s1._domainkey", "selector: -1", "selector:",
       "selector: 12:30", "selector: [s1]", "key_len: 512", "key_len: '2048'", "enable: yes",
       "enable: 'true'", "default: -1", "default: '0'", "default: 1000000000",
       "start_date: 2027-07-01",
       "start_date: 2027-07-01T00:00", "start_date: 2027-07-01T00:00:30Z", "replaces: s1",
       "start_date: 2027-13-01T00:00Z", "start_date: 2027-07-01T00:00+24:00",
       "selector: s2, replaces: s1._DomainKey", "selector: s1, selector: s2")),
)  # fmt: skip


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


@pytest.mark.parametrize("text", VALID)
def test_it_accepts_what_the_loader_accepts(text):
    assert problems(text.encode()) == ()
    assert accepts(Schema.SPECS, text.encode())


@pytest.mark.parametrize("text", MISTAKES)
def test_common_mistakes_are_refused_by_both(text):
    assert problems(text.encode())
    assert not accepts(Schema.SPECS, text.encode())


def test_it_has_the_fields_of_an_entry():
    definitions = SCHEMA["$defs"]
    assert [*definitions["fields"]["properties"]] == [*ENTRY_FIELDS]
    of_one_key = {"sign_domain", "selector", "replaces"}
    assert {*definitions["defaults"]["properties"]} == ENTRY_FIELDS.keys() - of_one_key
    assert all("description" in definitions[field] for field in ENTRY_FIELDS)
