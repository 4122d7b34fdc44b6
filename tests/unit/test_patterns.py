"""Regular expressions: none that Python 3.11.2 matches wrongly, and none that backtrack for long.

Possessive quantifiers and atomic groups are wrong there in several ways (CPython issues 106052 and
101955), and Debian 12 has that version.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dkimctl.errors import UsageError
from dkimctl.names import is_name, parse_domain, parse_selector
from dkimctl.specs.entries import parse_start_date
from dkimctl.strict_yaml import MAX_VALUE

PACKAGE = Path(__file__).parents[2] / "dkimctl"
POSSESSIVE = re.compile(r"[*+?}]\+|\(\?>")


def texts(node: ast.AST) -> Iterator[str]:
    """The text of each literal; in an f-string, a letter for each value."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in child.values
            )
        elif isinstance(child, ast.Constant) and isinstance(child.value, str | bytes):
            value = child.value
            yield value if isinstance(value, str) else value.decode("latin-1")
        else:
            yield from texts(child)


def possessive(source: str) -> list[str]:
    return [text for text in texts(ast.parse(source)) if POSSESSIVE.search(text)]


def test_no_pattern_is_possessive_or_atomic():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    wrong = {str(path): possessive(path.read_text("utf-8")) for path in paths}
    assert not {path: patterns for path, patterns in wrong.items() if patterns}


HOSTILE = [
    (piece * MAX_VALUE)[:MAX_VALUE] + end
    for piece in ("a", "a.", "a-", "-", ".", "1", "1.", "a" * 63 + ".", "2027-07-01T00:00 ", "é")
    for end in ("", "_", "-", ".", "!")
]


@pytest.mark.parametrize("check", [is_name, parse_domain, parse_selector, parse_start_date])
def test_the_longest_values_are_checked_at_once(check):
    begun = time.process_time()
    for text in [*HOSTILE, *(text[-253:] for text in HOSTILE)]:
        try:
            check(text)
        except UsageError:
            continue
    assert time.process_time() - begun < 2  # for a hundred; one that backtracks takes minutes
