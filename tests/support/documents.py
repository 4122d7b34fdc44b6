"""The code blocks of README.md and docs/*.md, which tests run as they are."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8")
         for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}  # fmt: skip
LANGUAGES = ("sh", "yaml", "js", "sql")  # of the blocks that tests must run


def blocks(language: str) -> list[str]:
    """The code blocks in a language, from all pages, each once."""
    pattern = rf"^```{language}\n(.*?)^```$"
    every = (re.findall(pattern, page, re.MULTILINE | re.DOTALL) for page in PAGES.values())
    return list(dict.fromkeys(block for of_page in every for block in of_page))


def example(mark: str, language: str = "sh") -> str:
    """The one code block that contains `mark`, which is a literal for `blocks_in_tests`."""
    matches = [block for block in blocks(language) if mark in block]
    assert len(matches) == 1, f"{len(matches)} blocks contain {mark!r}"
    return matches[0]


def unit(text: str) -> configparser.ConfigParser:
    """A unit of systemd."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(text)
    return parser


def blocks_in_tests() -> Iterator[str]:
    """The blocks that tests ask for, read from the calls of `example` in their source."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        if "from documents import" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            is_call = isinstance(node, ast.Call) and node.args
            if is_call and getattr(node.func, "id", "") == "example":
                yield example(*(ast.literal_eval(word) for word in node.args))
