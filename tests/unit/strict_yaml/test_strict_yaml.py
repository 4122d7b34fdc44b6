"""Documents: what is written and where; what could surprise in YAML is refused."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import MappingNode, Node, SequenceNode, is_plain
from dkimctl.strict_yaml.source import decode, read_bytes
from dkimctl.text.wording import nearest, shown


@pytest.fixture(params=["libyaml", "python"])
def parser(request, monkeypatch):
    """Both parsers: not every platform has PyYAML's C one."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


def as_python(document: Document, node: Node):
    """A whole node as dicts, lists and strings; an alias, which nothing takes, as None."""
    if isinstance(node, MappingNode):
        return {key.value: as_python(document, value) for key, value in document.pairs(node, "it")}
    if isinstance(node, SequenceNode):
        return [as_python(document, item) for item in document.items(node, "it")]
    return document.value(node, "it", lambda scalar: scalar.value)


def read(text: str):
    with Document(text, "f.yaml") as document:
        root = document.root()
        return None if root is None else as_python(document, root)


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "word", ["on", "yes", "0123", "1e3", "12:30", "2026_01", "2026-01-01", "=", ".5", "0x1"]
)
def test_words_that_yaml_takes_for_something_else_stay_text(parser, word):
    assert read(f"key: {word}") == {"key": word}


def test_a_scalar_says_whether_it_was_written_plain(parser):
    document = Document("[a, 'a', \"a\"]", "f")
    styles = [is_plain(item) for item in document.items(document.root(), "it")]
    assert styles == [True, False, False]


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n", "~\n", "null\n", "\ufeff"])
def test_a_file_that_says_nothing_has_no_root(parser, text):
    with Document(text, "f") as document:
        assert document.root() is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x b\n", "f.yaml:1:4: a YAML anchor (&)"),
        ("a: *x\n", "f.yaml:1:4: it must be a single value, not a YAML alias (*)"),
        ("a: !!str b\n", "f.yaml:1:4: a YAML tag (!)"),
        ("a: ! b\n", "f.yaml:1:4: a YAML tag (!)"),
        ("- !x [b]\n", "f.yaml:1:3: a YAML tag (!)"),
        ("a: {<<: {b: c}}\n", "f.yaml:1:5: a YAML merge key (<<)"),
        ("%YAML 1.1\n--- [a]\n", "f.yaml:1:1: a YAML directive"),
        ("%TAG !x! tag:x,2000:\n--- [a]\n", "f.yaml:1:1: a YAML directive"),
        ("[a]\n--- [b]\n", "f.yaml:2:1: a second document"),
        ("? [a]\n: b\n", "f.yaml:1:3: a key must be a single word, not a list"),
        ("a: b\nc: d\n'a': e\n", 'f.yaml:3:1: the key "a" is already on line 1'),
        ("a:\n", "f.yaml:1:3: it has no value"),
        ("😀é: {<<: b}\n", "f.yaml:1:6: a YAML merge key (<<)"),
        ("\ufeff{<<: b}\n", "f.yaml:1:2: a YAML merge key (<<)"),
    ],
)
def test_what_could_surprise_is_a_problem_at_its_place(parser, text, expected):
    assert problems(text) == [expected]


def test_problems_before_a_syntax_error_are_reported_with_it(parser):
    first, second = problems("a: &x b\nc: d: e\n")
    assert first == "f.yaml:1:4: a YAML anchor (&)"
    assert second.startswith("f.yaml:2:5: not valid YAML: mapping values are not allowed")


def test_an_unclosed_bracket_names_the_line_on_which_it_was_opened(parser):
    (problem,) = problems("a: [b,\nc,\nd\n")
    assert "begins on line 1" in problem


def test_nesting_beyond_every_schema_is_left_at_once(parser):
    begun = time.process_time()
    *_, last = problems("[" * 100_000)
    assert last == "f.yaml:1:9: nested too deep"
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\nb: \xff", "f:2:4: byte 0xff is not UTF-8"),
        (b"\xef\xbb\xbfa\r\n\xc3\xa9: \xff", "f:2:4: byte 0xff is not UTF-8"),
        (b"a: \xed\xa0\x80", "f:1:4: byte 0xed is not UTF-8"),
        (b"a\r\0", "f:2:1: the character U+0000 is not allowed"),
        (b"a: \x1b[2J", "f:1:4: the character U+001B is not allowed"),
        (b"a: \xe2\x80\xa8", "f:1:4: the character U+2028 is not allowed"),
        ("a: b".encode("utf-16"), "f:1:1: the file is UTF-16 text"),
        ("a: b".encode("utf-16-be"), "f:1:1: the character U+0000 is not allowed"),
    ],
)
def test_what_is_no_text_is_named_at_its_place(data, expected):
    with pytest.raises(InputError) as caught:
        Document(decode(data, "f"), "f")
    assert str(caught.value).startswith(expected)
    assert "UTF-8" in caught.value.hint


@given(st.binary())
def test_any_bytes_are_read_or_refused_with_a_place(data):
    found: tuple[Problem, ...] = ()
    try:
        with Document(decode(data, "f"), "f") as document:
            if root := document.root():
                as_python(document, root)
    except InputError as error:
        found = error.problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in found)


# What YAML and this house allow unescaped.
words = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1)


@given(st.recursive(words, lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_what_json_writes_is_read_back(value):
    assert read(json.dumps([value], ensure_ascii=False)) == [value]


@given(st.dictionaries(words.filter(lambda word: word != "<<"), words, min_size=1))
def test_mappings_that_pyyaml_writes_are_read_back(value):
    text = yaml.safe_dump(value, default_style='"')
    assert read(text) == value


def test_a_missing_file_a_directory_and_a_forbidden_file_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file .*nothing\.yaml"):
        read_bytes(str(tmp_path / "nothing.yaml"))
    with pytest.raises(UsageError, match="is a directory"):
        read_bytes(str(tmp_path))


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="the mode stops nobody here"
)
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "f.yaml"
    path.touch(mode=0o000)
    with pytest.raises(UsageError, match="cannot read"):
        read_bytes(str(path))


def test_standard_input_is_read_for_a_hyphen(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"- \xffa")))
    assert read_bytes("-") == b"- \xffa"


def test_a_closed_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        read_bytes("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"- a.example\n" * 20_000,))
    writer.start()
    assert len(read_bytes(str(path))) == 240_000
    writer.join()


def test_a_file_beyond_the_bound_is_refused(tmp_path):
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(UsageError, match="larger than 64 MiB"):
        read_bytes(str(path))


def test_quoted_text_is_short_and_harmless():
    assert shown("a\x1b[2J\u202e\n") == r'"a\x1b[2J\u202e\x0a"'
    assert shown("x" * 61) == f'"{"x" * 60}…"'


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Selecter", "did you mean selector?"), ("?", "known here: selector, key_len")],
)
def test_an_unknown_word_gets_the_nearest_or_all(word, expected):
    assert nearest(word, ["selector", "key_len"]) == expected
