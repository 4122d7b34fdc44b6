"""Help of every command, and what is suggested for a misspelt one."""

from __future__ import annotations

import pytest

import make_commands

COMMANDS = [path[1:] for path, _ in make_commands.commands()]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_each_command_has_an_example(cli, words):
    done = cli(*" ".join(words).split(), "--help")
    assert (done.status, done.err) == (0, "")
    _, _, examples = done.out.partition("Examples")
    assert f"dkimctl {' '.join(words)}" in examples


def test_the_help_lists_every_command(cli):
    shown = cli("--help").out
    for name in {words[0] for words in COMMANDS if words}:
        assert f"│ {name} " in shown


def test_a_misspelt_command_or_option_is_suggested(cli):
    assert "register" in cli("regster").err
    assert "--dry-run" in cli("register", "--dry-rum", "x").err


def test_the_version_is_printed(cli):
    first, second = cli("--version"), cli("--version", "--help")
    assert cli("-V") == first
    assert (first.status, first.out[:8]) == (0, "dkimctl ")
    assert second.status == 0
