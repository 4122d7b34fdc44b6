"""What docs/make_*.py generate is up to date. If not, run the script that the failure names."""

from __future__ import annotations

import runpy

from documents import ROOT

DOCS = ROOT / "docs"


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_command_reference_is_up_to_date():
    script = runpy.run_path(str(DOCS / "make_commands.py"))
    assert read("commands.md") == script["page"](), "run python docs/make_commands.py"


def test_the_map_is_up_to_date():
    script = runpy.run_path(str(DOCS / "make_map.py"))
    picture = script["picture"](script["arrows"]())
    assert read("images/map.svg") == picture, "run python docs/make_map.py"


def test_the_picture_of_the_terminal_is_up_to_date():
    script = runpy.run_path(str(DOCS / "make_terminal.py"))
    stored, drawn = read("images/terminal.svg"), script["picture"]()
    assert "truncated" in stored
    assert script["words"](stored) == script["words"](drawn), "run python docs/make_terminal.py"


def test_the_picture_of_the_overview_is_up_to_date():
    script = runpy.run_path(str(DOCS / "make_overview.py"))
    assert read("images/overview.svg") == script["picture"](), "run python docs/make_overview.py"


def test_packages_import_only_from_packages_below_them():
    script = runpy.run_path(str(DOCS / "make_map.py"))
    arrows = script["arrows"]()
    level = {
        package: depth
        for depth, packages in enumerate(script["layers"](arrows))
        for package in packages
    }
    assert all(level[package] < level[other] for package in arrows for other in arrows[package])
