"""Any spec file is loaded, or every problem in it has its place."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.client.wire import encode_registration
from dkimctl.dkim import record_name
from dkimctl.errors import InputError
from dkimctl.models import DomainSpec
from dkimctl.service.registrations import Entry, validate_entry
from dkimctl.text import printable
from mutations import YAML_SCALARS, block, documents, flow
from spec_files import load_specs
from terminals import is_harmless

LONGEST = "a." * 119 + "ab"
DOMAINS = st.integers(0, 99).map("d{}.example".format) | st.sampled_from(
    ("example.com", "EXAMPLE.com.", "a.example", "'b.example'", '"c.example"', "日本語.jp", "ß.de",
     "xn--wgv71a119e.jp", "a..b", "192.0.2.1", "'[::1]'", LONGEST, "'*.a'", "a_b.c")
)  # fmt: skip
FIELDS = {
    "selector": st.sampled_from(("s1", "S1", "a.b", "20260101", "on", "1e3", "12:30", "é")),
    "key_len": st.sampled_from(("1024", "2048", "2048", "4096", '"2048"')),
    "start_date": st.sampled_from(
        ("2027-07-01T00:00+09:00", "2027-07-01T00:00:00Z", "0001-01-01T00:00-23:59",
         "9999-12-31T23:59-23:59", "2027-02-30T00:00Z")
    ),
    "default": st.sampled_from(("0", "1", "999999999", "1000000000")),
    "enable": st.sampled_from(("true", "false", "yes")),
    "replaces": st.sampled_from(("s0", "S1", "k_1", "on", "12:30")),
}  # fmt: skip
DEFAULTS = {key: values for key, values in FIELDS.items() if key not in ("selector", "replaces")}


def mappings(required, optional):
    """Mappings of these keys, in any order."""
    fields = st.fixed_dictionaries(required, optional=optional)
    return fields.flatmap(lambda fields: st.permutations(list(fields.items()))).map(tuple)


ENTRIES = DOMAINS | mappings({"sign_domain": DOMAINS}, FIELDS)
LISTS = st.lists(ENTRIES, max_size=3)
TREES = LISTS | mappings({"domains": LISTS}, {"defaults": mappings({}, DEFAULTS)})
FILES = documents(TREES, scalars=YAML_SCALARS, writers=(block, flow))
CELLS = (
    "", "a.example", "b.example", "s1", "2048", "TRUE", "46204", "1E+05", "=1", '"x,y"', '"', "é",
)  # fmt: skip
ROWS = st.lists(
    st.sampled_from([*CELLS, ",", ",", ",", "\n", "\n", "\r\n", " ", "\0"]), max_size=30
)
HEADERS = st.lists(
    st.sampled_from(("sign_domain", *FIELDS, "value", "outcome", "x", "")), min_size=1, max_size=4
)
TABLES = st.builds(
    lambda header, row: f"{','.join(header)}\n{''.join(row)}".encode(), HEADERS, ROWS
)
# The service accepts a name only if a generated selector fits before it.
ROOM = 253 - len("._domainkey.") - 9


def loaded(data: bytes) -> list[DomainSpec] | tuple:
    """The entries, or the problems."""
    try:
        return load_specs(data, "f.yaml")
    except InputError as error:
        return error.problems


@given(FILES)
@example(b"- " + b"[" * 5000)
@example(b"domains:\n" * 3000)
@example(b"- a.example\n" * 5000)
def test_any_file_is_loaded_or_each_problem_has_its_place(data):
    result = loaded(data)
    if isinstance(result, list):
        assert all(isinstance(spec, DomainSpec) for spec in result)
        return
    lines = len(re.split(rb"\r\n|\r|\n", data)) + 1  # the parser may see the end below the last
    for problem in result:
        assert 1 <= problem.line <= lines
        assert 1 <= problem.column <= len(data) + 1
        assert problem.message
        assert problem.hint
        assert is_harmless(printable(f"{problem} {problem.hint}"))


@given(TABLES)
@example(b'sign_domain\n"')
@example("a.example\r\n\t\u00e4 b.example # x\r*.example\n".encode())
def test_any_table_is_loaded_or_each_problem_has_its_place(data):
    try:
        specs = load_specs(data, "f.csv")
    except InputError as error:
        lines = re.split("\r\n|\r|\n", data.decode())
        for problem in error.problems:
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert problem.hint
            assert is_harmless(printable(f"{problem} {problem.hint}"))
    else:
        keys = [spec.key for spec in specs]
        assert len(set(keys)) == len(keys)


@given(FILES)
def test_the_service_accepts_what_is_loaded(data):
    result = loaded(data)
    if not isinstance(result, list):
        return
    sent = json.loads(encode_registration(result))["domains"]
    assert len(sent) == len(result)
    for entry, spec in zip(sent, result, strict=True):
        stated = {key: value for key, value in spec._asdict().items() if value is not None}
        for name in ("replaces", "implied"):  # never sent
            stated.pop(name, None)
        assert entry == stated
        if spec.selector is not None or len(spec.sign_domain) <= ROOM:
            assert isinstance(validate_entry(entry), Entry)
        assert len(record_name(spec.selector or "s", spec.sign_domain)) <= 253
    keys = [spec.key for spec in result]
    assert len(set(keys)) == len(keys)


@given(FILES)
def test_without_libyaml_the_same_is_read(data):
    expected = loaded(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        result = loaded(data)
    assert result == expected if isinstance(expected, list) else isinstance(result, tuple)
