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
