"""tests/interface.md: every statement of the interface is proven on service and client."""

from __future__ import annotations

import ast

import pytest

from interface_table import (
    STATEMENTS,
    TABLE,
    Interface,
    Proof,
    Statement,
    find_errors,
    find_proofs,
    proofs_in,
    read_statements,
    render,
)

SECTIONS = ["2.1", "2.2", "2.3", "2.4", "3.1", "3.2", "3.3", "4.1", "4.2", "4.3",
            "5.1", "5.2", "5.3", "7.1", "7.2", "7.3", "7.4", "8"]  # fmt: skip


@pytest.fixture(scope="module")
def interface() -> Interface:
    return read_statements(STATEMENTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def proofs() -> list[Proof]:
    return list(find_proofs())


def test_every_statement_is_proven_on_both_sides(interface, proofs):
    assert list(find_errors(interface, proofs)) == []


def test_every_section_has_statements(interface):
    assert list(dict.fromkeys(statement.section for statement in interface.statements)) == SECTIONS


def test_the_table_is_up_to_date(interface, proofs):
    expected = render(interface, proofs)
    assert TABLE.read_text(encoding="utf-8") == expected, (
        "run: python tests/support/interface_table.py"
    )


MARKED = """
@pytest.mark.interface("2.1", "a", "b")
@pytest.mark.interface("2.2", "c")
def test_one(): ...

class TestGroup:
    @pytest.mark.parametrize("x", [])
    @pytest.mark.interface("2.1", "a")
    def test_two(self): ...
    @pytest.mark.interface("2.1", "a")
    def helper(self): ...

@pytest.mark.slow
def test_unmarked(): ...
"""


def test_marks_are_found_on_functions_and_in_classes():
    assert list(proofs_in(ast.parse(MARKED).body, "test_x.py")) == [
        (("2.1", "a"), "test_x.py::test_one"),
        (("2.1", "b"), "test_x.py::test_one"),
        (("2.2", "c"), "test_x.py::test_one"),
        (("2.1", "a"), "test_x.py::TestGroup::test_two"),
    ]


TEXT = '["2.1"]\na = "First"\nb = "Second"\n[unproven]\n"2.1 b" = { service = "does nothing" }\n'
A, B, C = (Statement("2.1", key) for key in "abc")
SOUND = (
    Proof(A, "unit/service/test_x.py::test_a"),
    Proof(A, "integration/test_x.py::test_a"),
    Proof(B, "unit/client/test_x.py::test_b"),
)


def test_a_sound_table_has_no_errors_and_a_row_for_each_statement():
    interface = read_statements(TEXT)
    assert list(find_errors(interface, SOUND)) == []
    assert render(interface, SOUND).splitlines()[-2:] == [
        "| 2.1 | First | `unit/service/test_x.py::test_a` | `integration/test_x.py::test_a` |",
        "| 2.1 | Second | - does nothing | `unit/client/test_x.py::test_b` |",
    ]


@pytest.mark.parametrize(
    ("proofs", "text", "error"),
    [
        (SOUND[1:], TEXT, "2.1 a: not proven on the service"),
        (SOUND[:2], TEXT, "2.1 b: not proven on the client"),
        (
            [*SOUND, Proof(B, "unit/service/test_x.py::test_b")],
            TEXT,
            "2.1 b: both proven and unproven on the service",
        ),
        (
            [*SOUND, Proof(C, "unit/test_x.py::test_c")],
            TEXT,
            "unit/test_x.py::test_c: interface.toml has no statement 2.1 c",
        ),
        (SOUND, TEXT + '"2.1 c" = { client = "x" }\n', "[unproven]: no statement 2.1 c"),
    ],
)
def test_errors_of_a_table_are_found(proofs, text, error):
    assert list(find_errors(read_statements(text), proofs)) == [error]
