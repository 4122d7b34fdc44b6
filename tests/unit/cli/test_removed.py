"""A removed command or option says in one line what replaces it."""

from __future__ import annotations

import pytest

from dkimctl.cli.main import REMOVED_COMMANDS, REMOVED_OPTIONS, run

ROWS = [*REMOVED_COMMANDS.items()]
ROWS += [(f"{command} {option} x", text) for (command, option), text in REMOVED_OPTIONS.items()]


@pytest.mark.parametrize(("line", "text"), ROWS)
def test_it_is_a_usage_error_that_names_the_replacement(line, text, capsys):
    assert run(line.split()) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(("dkimctl: error: no such ", "dkimctl: error: invalid value for "))
    assert hint == f"hint: it was removed: {text}"
