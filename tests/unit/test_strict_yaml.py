"""Documents: text with its place, and problems for everything surprising in YAML."""

from __future__ import annotations

import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError
from dkimctl.strict_yaml import Document, Node


def as_python(document: Document, node: Node):
    """A whole node as dicts, lists and strings; None for an alias, which is a problem."""
    if document.is_mapping(node):
        return {key.value: as_python(document, value) for key, value in document.pairs(node, "it")}
    if isinstance(node, yaml.SequenceStartEvent):
        return [as_python(document, item) for item in document.items(node, "it")]
    return document.value(node, "it", lambda text, _is_plain: text)


def read(text: str):
    with Document(text.encode(), "f.yaml") as document:
        root = document.root()
        return None if root is None else as_python(document, root)


@pytest.mark.parametrize("has_libyaml", [True, False])
@pytest.mark.parametrize(
    ("text", "expected"),
    [("a: &x b\n", "1:4: YAML anchors (&) are not supported"),
     ("a: *x\n", "1:4: it must be a single value, not a YAML alias (*)"),
     ("a: !!str b\n", "1:4: YAML tags (!) are not supported"),
     ("😀é: {<<: {b: c}}\n", "1:6: YAML merge keys (<<) are not supported"),
     ("%YAML 1.1\n--- [a]\n", "1:1: YAML directives are not supported"),
     ("[a]\n--- [b]\n", "2:1: a second YAML document"),
     ("? [a]\n: b\n", "1:3: a key must be a single word, not a list"),
     ("a: b\nc: d\n'a': e\n", '3:1: the key "a" is already on line 1'),
     ("a:\n", "1:3: it has no value")],
)  # fmt: skip
def test_surprising_yaml_is_reported_with_its_place(text, expected, has_libyaml, monkeypatch):
    if not has_libyaml:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(InputError) as caught:
        read(text)
    assert [str(problem) for problem in caught.value.problems] == [f"f.yaml:{expected}"]


def test_a_syntax_error_comes_after_the_problems_before_it_and_names_what_is_open():
    with pytest.raises(InputError) as caught:
        read("a: &x b\nc: [d,\ne\n")
    first, second = map(str, caught.value.problems)
    assert first == "f.yaml:1:4: YAML anchors (&) are not supported"
    assert "that begins on line 2" in second


@pytest.mark.parametrize("has_libyaml", [True, False])
def test_deep_nesting_stops_at_once(has_libyaml, monkeypatch):
    if not has_libyaml:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    begun = time.process_time()
    # libyaml 0.2.6 reads ahead of us, and stops by itself at 1,000 levels.
    with pytest.raises(InputError, match=r"f\.yaml:1:(9|1001): .*nested too deeply"):
        read("[" * 100_000)
    assert time.process_time() - begun < 5


# What YAML allows unescaped.
words = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1)


@given(st.recursive(words, lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_what_json_writes_is_read_back(value):
    assert read(json.dumps([value], ensure_ascii=False)) == [value]
