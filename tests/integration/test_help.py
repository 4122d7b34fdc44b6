"""Help of every command, and what is suggested for a misspelt one."""

from __future__ import annotations

import re

import pytest

import make_commands

COMMANDS = [path[1:] for path, _ in make_commands.commands()]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_each_command_has_an_example(cli, words):
    words = " ".join(words).split()
    done = cli(*words, "--help", env={"COLUMNS": "80"})
    assert (done.status, done.err) == (0, "")
    assert len(done.out.splitlines()) <= 60
    assert cli("help", *words, env={"COLUMNS": "80"}) == done
    _, _, examples = done.out.partition("Examples")
    assert f"dkimctl {' '.join(words)}" in examples


def test_help_settings_has_the_options_that_no_help_lists(cli):
    settings = re.findall("--[a-z-]+", cli("help", "settings").out)
    assert {"--base-url", "--batch-size", "--proxy"} < {*settings}
    done = cli("register", "--help")
    assert "dkimctl help settings" in done.out
    assert len({*re.findall("(?m)^│ (--[a-z-]+)", done.out)} - {"--help"}) <= 20


def test_the_help_lists_every_command_as_its_own_help_begins(cli):
    shown = " ".join(cli("--help", env={"COLUMNS": "200"}).out.split())
    for path, command in make_commands.commands():
        if len(path) == 2:
            first = " ".join(command.help.split("\n\n")[0].split())
            assert f"│ {path[1]} {first} │" in shown


def test_a_misspelt_command_or_option_is_suggested(cli):
    assert "register" in cli("regster").err
    assert "--dry-run" in cli("register", "--dry-rum", "x").err


def test_the_version_is_printed(cli):
    first, second = cli("--version"), cli("--version", "--help")
    assert cli("-V") == first
    assert (first.status, first.out[:8]) == (0, "dkimctl ")
    assert second.status == 0
