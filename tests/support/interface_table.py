"""Generate tests/interface.md from interface.toml and the `interface` marks of the tests.

Run `python tests/support/interface_table.py` after a change of either.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
STATEMENTS = TESTS / "interface.toml"
TABLE = TESTS / "interface.md"

_HEAD = """\
# The interface and its tests

Each statement of the interface (sections 2 to 8, in our own words) with the tests that prove it:
on the embedded service, and on the client. Where the interface specifies nothing, the row gives
our decision. Names are relative to `tests/`.

Generated from `interface.toml` and the `interface` marks of the tests: change those, and run
`python tests/support/interface_table.py`.

| section | statement | service | client |
|---|---|---|---|
"""


class Statement(NamedTuple):
    """A statement of the interface, as a mark names it."""

    section: str  # "2.3"
    key: str  # "selector"

    def __str__(self) -> str:
        return f"{self.section} {self.key}"


class Proof(NamedTuple):
    """A test that is marked as proof of a statement."""

    statement: Statement
    test: str  # "unit/test_dkim.py::TestClass::test_name"

    @property
    def side(self) -> str:
        return "service" if self.test.startswith("unit/service/") else "client"


class Interface(NamedTuple):
    """The content of interface.toml."""

    statements: dict[Statement, str]
    unproven: Mapping[str, Mapping[str, str]]  # statement -> side -> why it has nothing to prove


def read_statements(text: str) -> Interface:
    sections = tomllib.loads(text)
    unproven = sections.pop("unproven", {})
    return Interface(
        {
            Statement(section, key): statement
            for section, statements in sections.items()
            for key, statement in statements.items()
        },
        unproven,
    )


def find_proofs(folder: Path = TESTS) -> Iterator[Proof]:
    """The marked tests below `folder`, file by file."""
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from proofs_in(tree.body, path.relative_to(folder).as_posix())


def proofs_in(body: Iterable[ast.stmt], name: str) -> Iterator[Proof]:
    """The proofs in a module or class called `name`."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from proofs_in(node.body, f"{name}::{node.name}")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                for statement in _marked(decorator):
                    yield Proof(statement, f"{name}::{node.name}")


def _marked(decorator: ast.expr) -> Iterator[Statement]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.interface":
        section, *keys = map(ast.literal_eval, decorator.args)
        yield from (Statement(section, key) for key in keys)


def find_errors(interface: Interface, proofs: Iterable[Proof]) -> Iterator[str]:
    """Statements that a side does not prove, and marks that name no statement."""
    proven = defaultdict(set)
    for proof in proofs:
        proven[proof.statement].add(proof.side)
        if proof.statement not in interface.statements:
            yield f"{proof.test}: interface.toml has no statement {proof.statement}"
    for statement in interface.statements:
        excused = interface.unproven.get(str(statement), {})
        for side in ("service", "client"):
            if (side in proven[statement]) == (side in excused):
                problem = "both proven and unproven" if side in excused else "not proven"
                yield f"{statement}: {problem} on the {side}"
    known = set(map(str, interface.statements))
    yield from (f"[unproven]: no statement {name}" for name in interface.unproven.keys() - known)


def render(interface: Interface, proofs: Iterable[Proof]) -> str:
    """The text of interface.md."""
    tests = defaultdict(list)
    for proof in proofs:
        tests[proof.statement, proof.side].append(f"`{proof.test}`")
    rows = []
    for statement, text in interface.statements.items():
        excused = interface.unproven.get(str(statement), {})
        cells = [
            f"- {excused[side]}" if side in excused else ", ".join(tests[statement, side])
            for side in ("service", "client")
        ]
        rows.append(f"| {' | '.join([statement.section, text, *cells])} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    interface = read_statements(STATEMENTS.read_text(encoding="utf-8"))
    TABLE.write_text(render(interface, list(find_proofs())), encoding="utf-8")
