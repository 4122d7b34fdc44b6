"""Help, and the completion scripts in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

COMPLETIONS = Path(__file__).parents[2] / "completions"
COMMANDS = [
    ["login"], ["logout"], ["status"], ["profile"], ["profile", "list"], ["profile", "use"],
    ["profile", "delete"], ["list"], ["overview"], ["register"], ["show-dns"], ["publish"],
    ["handoff"],
    ["api"], ["serve"], ["schema"], ["completion"], ["rotate"], ["rotate", "run"],
    ["rotate", "status"],
    ["ledger"], ["ledger", "import"], ["ledger", "forget"], ["init"], ["doctor"], ["verify"],
    ["service"], ["service", "client"], ["service", "client", "create"],
    ["service", "client", "list"], ["service", "client", "disable"],
    ["service", "client", "enable"], ["service", "client", "delete"],
    ["service", "registration"], ["service", "registration", "list"],
    ["service", "registration", "enable"], ["service", "registration", "disable"],
    ["service", "registration", "delete"], ["service", "export"],
    ["service", "client", "rotate-secret"], ["service", "backup"], ["service", "restore"],
    ["service", "audit"], ["service", "delivery"], ["service", "delivery", "add"],
]  # fmt: skip


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_the_help_of_each_command_has_an_example(cli, words):
    done = cli(*words, "--help")
    assert (done.status, done.err) == (0, "")
    _, _, examples = done.out.partition("Examples")
    assert f"dkimctl {' '.join(words)}" in examples


def test_the_help_lists_every_command(cli):
    shown = cli("--help").out
    for name in {words[0] for words in COMMANDS}:
        assert f"│ {name} " in shown


def test_a_misspelt_command_or_option_is_suggested(cli):
    assert "register" in cli("regster").err
    assert "--dry-run" in cli("register", "--dry-rum", "x").err


def test_the_version_is_printed(cli):
    first, second = cli("--version"), cli("--version", "--help")
    assert cli("-V") == first
    assert (first.status, first.out[:8]) == (0, "dkimctl ")
    assert second.status == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_scripts_in_the_repository_are_up_to_date(cli, shell):
    stored = (COMPLETIONS / f"dkimctl.{shell}").read_text(encoding="utf-8")
    assert cli("completion", shell).out == stored
