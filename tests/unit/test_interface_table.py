"""tests/interface.md: each statement of the interface is proven on service and client."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
TABLE = (TESTS / "interface.md").read_text(encoding="utf-8")
SECTIONS = ["2.1", "2.2", "2.3", "2.4", "3.1", "3.2", "3.3", "4.1", "4.2", "4.3",
            "5.1", "5.2", "5.3", "7.1", "7.2", "7.3", "7.4", "8"]  # fmt: skip
HEAD = ["section", "statement", "service", "client"]
NAMES = re.compile(r"`[^`]+`(, `[^`]+`)*")
REASON = re.compile(r"- \w.*")


class Row(NamedTuple):
    """One statement; a side is test names, or `- ` and why there is nothing to prove."""

    section: str
    statement: str
    service: str
    client: str

    def sides(self) -> tuple[str, str]:
        return self.service, self.client


def _rows(text: str) -> list[Row]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rest = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    assert head == HEAD
    return [Row(*cells) for cells in rest]


@cache
def _tests_in(path: Path) -> frozenset[str]:
    """The tests that a file defines: `test` or `Class::test`."""
    if not path.is_file():
        return frozenset()
    return frozenset(_test_names(ast.parse(path.read_text(encoding="utf-8")).body))


def _test_names(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
            yield from (f"{statement.name}::{name}" for name in _test_names(statement.body))
        elif isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            yield statement.name


def _exists(name: str) -> bool:
    path, _, test = name.partition("::")
    return Path(path).name.startswith("test_") and test in _tests_in(TESTS / path)


def _faults_of_cell(cell: str) -> Iterator[str]:
    if REASON.fullmatch(cell):
        return
    if not NAMES.fullmatch(cell):
        yield f"neither tests nor a reason: {cell!r}"
    for name in re.findall("`([^`]+)`", cell):
        if not _exists(name):
            yield f"there is no test {name}"


def _faults(text: str) -> Iterator[str]:
    """Everything that is wrong with a table."""
    rows = _rows(text)
    for row in rows:
        for cell in row.sides():
            yield from _faults_of_cell(cell)
        if all(map(REASON.fullmatch, row.sides())):
            yield f"proven on no side: {row.statement}"
    for row, count in Counter(row[:2] for row in rows).items():
        if count > 1:
            yield f"stands {count} times: {row}"
    sections = {row.section for row in rows}
    yield from (f"no section {name}" for name in SECTIONS if name not in sections)
    yield from (f"the interface has no section {name}" for name in sections.difference(SECTIONS))


def test_every_statement_is_proven_on_both_sides() -> None:
    assert list(_faults(TABLE)) == []


def test_tests_that_stand_in_a_class_or_not_are_found() -> None:
    source = "def test_a(): ...\nclass TestB:\n  def test_c(self): ...\n  def help(self): ...\n"
    assert list(_test_names(ast.parse(source).body)) == ["test_a", "TestB::test_c"]


FIRST = "| 2.1 | first | `unit/test_dkim.py::test_no_text_raises_anything_else` | - nothing to do |"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("| 2.2 | x |  | - nothing to do |", "neither tests nor a reason: ''"),
        ("| 2.2 | x | - | - nothing to do |", "neither tests nor a reason: '-'"),
        ("| 2.2 | x | test_app | - nothing to do |", "neither tests nor a reason: 'test_app'"),
        ("| 2.2 | x | - nothing | - nothing |", "proven on no side: x"),
        ("| 2.2 | x | `unit/test_dkim.py::test_x` | - y |", "no test unit/test_dkim.py::test_x"),
        (
            "| 2.2 | x | `unit/test_absent.py::test_x` | - y |",
            "no test unit/test_absent.py::test_x",
        ),
        ("| 2.2 | x | `unit/test_dkim.py` | - y |", "no test unit/test_dkim.py"),
        ("| 2.2 | x | `conftest.py::test_x` | - y |", "no test conftest.py::test_x"),
        (FIRST, "stands 2 times: ('2.1', 'first')"),
        ("| 9 | x | - nothing | - nothing |", "the interface has no section 9"),
    ],
)
def test_what_is_wrong_with_a_table_is_found(line: str, fault: str) -> None:
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|---|---|", FIRST, line]
    faults = list(_faults("\n".join(lines)))
    assert any(fault in found for found in faults)
    assert "no section 8" in faults
    assert "no section 2.1" not in faults
