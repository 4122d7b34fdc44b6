"""Files that are no spec files: what they are is said, with a command that makes one of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError
from dkimctl.specs.loading import load_specs
from dkimctl.specs.other_files import advice

FIXTURES = Path(__file__).parents[2] / "fixtures" / "specs"
SAID = {
    "csv": "is a table (CSV), not YAML",
    "csv-semicolons": "is a table (CSV), not YAML",
    "csv-tabs": "is a table (CSV), not YAML",
    "csv-quoted": "is a table (CSV), not YAML",
    "csv-without-header": "is a table (CSV), not YAML",
    "csv-one-column": "is a table (CSV), not YAML",
    "plain-list": "is a plain list of domains",
    "plain-list-with-mark": "is a plain list of domains",
    "plain-list-utf-16": "is in UTF-16",
    "domains-in-a-line": "has several domains in a line",
    "json-lines": "has one JSON object a line",
    "saved-result": "is a saved result",
    "saved-lines": "is the output of --format jsonl",
    "zone-file": "is a zone file",
    "zone-records": "is a zone file",
    "html": "is an HTML or XML document",
    "spreadsheet": "is binary",
    "config": "is a config file",
    "domains-as-keys": "the domains are the keys of a mapping",
    "entry-in-no-list": "an entry that is in no list",
    "email-addresses": "is a list of email addresses",
    "urls": "is a list of URLs",
    "no-space-after-hyphen": "has list items without '- '",
    "other-bullets": "has list items without '- '",
}
# What the command of the hint makes of a file.
MADE = {
    "plain-list": [("example.com", None), ("example.net", None), ("xn--bcher-kva.example", None)],
    "plain-list-with-mark": [("example.com", None), ("example.net", None)],
    "json-lines": [("example.com", "s1"), ("example.net", "s1")],
}


def problem_of(data: bytes, name: str):
    with pytest.raises(InputError) as caught:
        load_specs(data, name)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", SAID)
def test_what_the_file_is(name):
    problem = problem_of((FIXTURES / f"{name}.yaml").read_bytes(), "list.txt")
    assert SAID[name] in problem.message
    assert str(problem).startswith("list.txt:1:1: ")
    assert problem.hint


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("is_piped", [False, True])
def test_the_command_of_the_hint_makes_a_spec_file(name, is_piped, tmp_path):
    source = FIXTURES / f"{name}.yaml"
    data = source.read_bytes()
    (tmp_path / "in.yaml").write_bytes(data)
    hint = problem_of(data, "<stdin>" if is_piped else "in.yaml").hint
    (command,) = re.findall("`(.*)`", hint)
    if not shutil.which(command.partition(" ")[0]):
        pytest.skip(f"needs {command.partition(' ')[0]}")
    done = subprocess.run(command, shell=True, cwd=tmp_path, check=True, input=data,
                          stdout=subprocess.PIPE)  # fmt: skip
    (tmp_path / "out.yaml").write_bytes(done.stdout)
    made = tmp_path / ("out.yaml" if is_piped else "domains.yaml")
    specs = load_specs(made.read_bytes(), made.name)
    assert [(spec.sign_domain, spec.selector) for spec in specs] == MADE[name]


@pytest.mark.parametrize("name", [name for name in SAID if name.startswith("csv")])
def test_a_table_needs_a_name_that_ends_in_csv(name):
    data = (FIXTURES / f"{name}.yaml").read_bytes()
    for file, what in (("list.txt", "give it a name"), ("<stdin>", "write it to a file")):
        hint = problem_of(data, file).hint
        assert what in hint
        assert "ends in .csv" in hint


def test_a_hint_never_overwrites_the_file_or_quotes_an_odd_name():
    assert " > specs.yaml`" in problem_of(b"example.com\n", "a/domains.yaml").hint
    for name in ("a b.txt", "$(x).txt", "-rf", "a;b", "\x1b[2J.txt"):
        hint = problem_of(b"example.com\n", name).hint
        assert name not in hint, name


def test_a_file_that_is_meant_as_a_spec_file_keeps_its_problems():
    for text in ("- a_b\n", "domains: x.example\n", "domains:\n  - a_b\nsign_domain: x\n"):
        with pytest.raises(InputError) as caught:
            load_specs(text.encode(), "f")
        assert "not YAML" not in str(caught.value)


def test_a_wildcard_without_quotes_is_called_so():
    problem = problem_of((FIXTURES / "wildcard.yaml").read_bytes(), "f")
    assert "a wildcard (*) cannot be a signing domain" in problem.message
    assert "quotes" in problem.message
    assert "list each signing domain" in problem.hint


@given(st.binary() | st.text().map(str.encode))
def test_nothing_of_the_file_is_quoted(data):
    told = advice(data, "list.txt") or ("", "")
    assert all(text.isascii() and text.isprintable() for text in told)
    assert b"zq" not in b"".join(text.encode() for text in advice(b"zq.zq\n", "f") or ())
