"""Each statement of interface.toml is proven by a marked test, on the service and on the client."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator

from documents import ROOT

TESTS = ROOT / "tests"
SECTIONS = ["2.1", "2.2", "2.3", "2.4", "3.1", "3.2", "3.3", "4.1", "4.2", "4.3",
            "5.1", "5.2", "5.3", "7.1", "7.2", "7.3", "7.4", "8"]  # fmt: skip


def marks(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """The statements that the tests of a module or class prove, such as "2.3 selector"."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield from marks(node.body)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(".interface"):
                    section, *keys = map(ast.literal_eval, mark.args)
                    yield from (f"{section} {key}" for key in keys)


def test_every_statement_is_proven_or_has_nothing_to_prove_on_both_sides():
    sections = tomllib.loads((TESTS / "interface.toml").read_text(encoding="utf-8"))
    unproven = sections.pop("unproven")
    assert list(sections) == SECTIONS
    statements = {f"{section} {key}" for section in sections for key in sections[section]}
    proven: dict[str, set[str]] = {"service": set(), "client": set()}
    for path in TESTS.rglob("test_*.py"):
        is_service = path.is_relative_to(TESTS / "unit" / "service")
        found = marks(ast.parse(path.read_text(encoding="utf-8")).body)
        proven["service" if is_service else "client"].update(found)
    for side, names in proven.items():
        excused = {name for name, sides in unproven.items() if side in sides}
        assert names | excused == statements, f"on the {side}"
        assert not names & excused, f"both proven and unproven on the {side}"
