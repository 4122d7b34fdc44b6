"""Mutated documents: YAML and JSON with wrong subtrees and bytes.

A tree consists of the source text of its scalars: a str is a scalar, a list is a list, a tuple of
pairs is a mapping. So a mapping can have a key twice, and a scalar can be invalid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

Tree = Any  # str | list[Tree] | tuple[tuple[str, Tree], ...]
Path = tuple[int, ...]  # the position in each structure on the way

# Mostly UTF-8: in another encoding, most documents fail at the first byte.
ENCODINGS = (
    *["utf-8"] * 20, "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037",
)  # fmt: skip

# Text with a meaning in JSON, in YAML, or on a terminal, and invalid text.
JSON_SCALARS = (
    '""', "null", "true", "0", "-0", "1.0", "-1", "1e400", "-1e-400", "9" * 30, "9" * 5000,
    "1024.5", "NaN", "-Infinity", "[]", "{}", r'"\ud800"', r'"\udc00\ud800"', r'"\u0000"',
    r'"\u001b[2J"', r'"\u202e"', r'"\u0085\u2028"', '"=1+1"', '"a\\nb\\r\\nc"', r'"\\\" ; ("',
    '"é"', '"\U0001f600"', '"' + "a" * 5000 + '"', "'a'", '"', "nul", "",
)  # fmt: skip
YAML_SCALARS = (
    *JSON_SCALARS, "~", "on", "0x1F", "1_000", "12:30", "&a b", "*a", "!!str a", "!!python/name:os",
    "! a", "<<", "2001-01-01", "|", ">-", "? a", "- a", "@a", "`a", "%a", "'it''s'", ".inf",
    r'"\uD83D\uDE00"', '"a\\\n  b"', "#", "a: b", "a #b", "\ta", "--- a", "...",
    r'"\xff\0\e\N\_\L\P"',
)  # fmt: skip
BYTES = (
    b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xfe\xff",
    b"\x1b[31m", b"\x1b]0;a\x07", b"\x7f", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbf\xbf", b"\r",
    b"\n", b"\r\n", b"\t", b" ", b"  ", b"-", b": ", b", ", b"[", b"]", b"{", b"}", b'"', b"'",
    b"#", b"\\", b"&a ", b"*a ", b"!!binary ", b"<<: ", b"? ", b"| ", b"%YAML 9.9\n", b"%TAG ! a\n",
    b"---\n", b"...\n", b"\n--- ", b"domains:\n", b"- a.example\n", b"\\ud800", b"\\u0000",
)  # fmt: skip


def flow(tree: Tree) -> str:
    """As JSON writes it, on one line."""
    if isinstance(tree, list):
        return f"[{', '.join(map(flow, tree))}]"
    if isinstance(tree, tuple):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in tree) + "}"
    return str(tree)


def block(tree: Tree, indent: str = "") -> str:
    """As block-style YAML, with a line for each scalar."""
    if isinstance(tree, list):
        return "".join(
            f"{indent}- {block(item, f'{indent}  ').removeprefix(f'{indent}  ')}" for item in tree
        )
    if isinstance(tree, tuple):
        return "".join(f"{indent}{key}:{_below(value, indent)}" for key, value in tree)
    return f"{tree}\n"


def _below(value: Tree, indent: str) -> str:
    is_structure = bool(value) and not isinstance(value, str)
    return f"\n{block(value, f'{indent}  ')}" if is_structure else f" {flow(value)}\n"


def text_scalars() -> st.SearchStrategy[str]:
    """Any text as a JSON string; lone surrogates are escaped, sometimes everything is."""
    return st.builds(
        lambda text, is_ascii: json.dumps(text, ensure_ascii=is_ascii),
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.booleans(),
    ) | st.text(st.characters(), max_size=5).map(json.dumps)


@st.composite
def mutated(
    draw: st.DrawFn, trees: st.SearchStrategy[Tree], scalars: st.SearchStrategy[str]
) -> Tree:
    """A tree with a few parts removed, duplicated, wrapped or replaced."""
    tree = draw(trees)
    for _ in range(draw(st.integers(0, 3))):
        paths = list(_paths(tree))
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        tree = _changed(tree, path, draw(_changes(scalars)))
    return tree


@st.composite
def spliced(draw: st.DrawFn, documents: st.SearchStrategy[bytes]) -> bytes:
    """A document with a few bytes removed, repeated or replaced."""
    data = draw(documents)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from((0, 0, 0, 1, 2, 5, 100))))
        times = draw(st.sampled_from((0, 1, 1, 1, 2, 20, 2000)))
        fragment = draw(st.sampled_from(BYTES) | st.binary(max_size=4) | st.just(data[start:end]))
        data = data[:start] + fragment * times + data[end:]
    return data


def documents(
    trees: st.SearchStrategy[Tree],
    *,
    scalars: Sequence[str],
    writers: Sequence[Callable[[Tree], str]],
) -> st.SearchStrategy[bytes]:
    """Mutations of valid documents, and some noise."""
    wrong = st.sampled_from(scalars) | text_scalars()
    written = st.builds(
        lambda tree, write, encoding: write(tree).encode(encoding, "replace"),
        mutated(trees, wrong),
        st.sampled_from(writers),
        st.sampled_from(ENCODINGS),
    )
    noise = st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode())
    return written | written | spliced(written) | noise


def json_tree(value: object) -> Tree:
    """The tree of a value, with its scalars and keys as JSON."""
    if isinstance(value, list):
        return [json_tree(item) for item in value]
    if isinstance(value, dict):
        return tuple((json.dumps(key), json_tree(item)) for key, item in value.items())
    return json.dumps(value)


def _paths(tree: Tree) -> Iterator[Path]:
    """The paths of all parts of the tree, at any depth."""
    if isinstance(tree, str):
        return
    for position, part in enumerate(tree):
        yield (position,)
        below = part if isinstance(tree, list) else part[1]
        yield from ((position, *path) for path in _paths(below))


def _changed(tree: Tree, path: Path, change: Callable[[Tree], list[Tree]]) -> Tree:
    """The tree with the part at `path` replaced by the parts that `change` makes of it."""
    position, *below = path
    before, part, after = tree[:position], tree[position], tree[position + 1 :]
    if isinstance(tree, list):
        made = [_changed(part, tuple(below), change)] if below else change(part)
        return [*before, *made, *after]
    key, value = part
    made = [_changed(value, tuple(below), change)] if below else change(value)
    return (*before, *((key, one) for one in made), *after)


def _changes(scalars: st.SearchStrategy[str]) -> st.SearchStrategy[Callable[[Tree], list[Tree]]]:
    return st.one_of(
        st.just(lambda part: []),
        st.just(lambda part: [part, part]),
        st.integers(1, 50).map(lambda depth: lambda part: [_nested(part, depth)]),
        st.integers(1, 20).map(lambda depth: lambda part: [_nested_in_mappings(part, depth)]),
        scalars.map(lambda scalar: lambda part: [scalar]),
        scalars.map(lambda scalar: lambda part: [((scalar, part),)]),
    )


def _nested(part: Tree, depth: int) -> Tree:
    for _ in range(depth):
        part = [part]
    return part


def _nested_in_mappings(part: Tree, depth: int) -> Tree:
    for _ in range(depth):
        part = (('"a"', part),)
    return part
