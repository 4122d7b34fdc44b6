"""No usage error quotes what was typed: it may be a secret in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dkimctl.cli.main import LazyGroup, run

SECRET = "s3cr3t+Value/0815="


def commands(command, path=()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command and group, with the words that lead to it."""
    yield path, command
    for name in getattr(command, "commands", ()):
        yield from commands(command.get_command(None, name), (*path, name))


COMMANDS = dict(commands(LazyGroup()))


def wrong_values(command) -> Iterator[list[str]]:
    """Each option that takes a choice or a number, with something else."""
    for option in command.params:
        kind = type(option.type).__name__
        if option.param_type_name == "option" and ("Choice" in kind or "Int" in kind):
            yield [f"{option.opts[0]}={SECRET}"]
            yield [option.opts[0], SECRET]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_command_quotes_what_it_does_not_understand(path, capsys):
    wrong = [[f"--{SECRET}"], [f"--secret={SECRET}"], [f"-{SECRET}"], ["x"] * 3 + [SECRET, "--no"]]
    if hasattr(COMMANDS[path], "commands"):
        wrong.append([SECRET])
    for words in (*wrong, *wrong_values(COMMANDS[path])):
        assert run([*path, *words]) == 2, words
        told = capsys.readouterr()
        assert "s3cr3t" not in told.out + told.err, words
        assert told.err.startswith("dkimctl: error: ")


def error_of(capsys, *words: str) -> str:
    run(words)
    return capsys.readouterr().err.splitlines()[0].removeprefix("dkimctl: error: ")


def test_what_is_wrong_is_still_said(capsys):
    assert error_of(capsys, SECRET) == "no such command"
    assert error_of(capsys, "regster") == "no such command. Did you mean 'register', 'ledger'?"
    assert error_of(capsys, "ledger", "imprt") == "no such command. Did you mean 'import'?"
    assert error_of(capsys, "status", "--banana") == "no such option: --banana"
    expected = "no such option: --colour (Possible options: --color)"
    assert error_of(capsys, "status", "--colour") == expected
    assert "(Possible options: --format" in error_of(capsys, "status", "--formt=json")
    expected = "invalid value for '--format': it is not one of table, json"
    assert error_of(capsys, "status", "--format", "yaml") == expected
    expected = "invalid value for '--ttl': it is not a whole number from 0 to 2147483647"
    for value in ("soon", "-1"):
        assert error_of(capsys, "show-dns", f"--ttl={value}") == expected
    expected = "invalid value for '--max-domains': it is not a whole number from 1 up"
    assert error_of(capsys, "serve", "--max-domains=0") == expected
    assert error_of(capsys, "status", "x") == "got unexpected extra argument"
    assert "missing argument" in error_of(capsys, "register")


@pytest.mark.parametrize(
    "words", [["status", "--profile", SECRET], ["check-dns", "--wait", SECRET],
              ["service", "client", "create", f"id:{SECRET}"], ["status", "--timeout", SECRET],
              ["rotate", "--key-len", SECRET]]
)  # fmt: skip
def test_values_that_are_checked_later_are_not_quoted_either(words, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(words) == 2
    assert "s3cr3t" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["client disable", "client enable", "client delete", "delivery add"]
)
def test_an_unknown_client_is_not_quoted(command, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["service", *command.split(), f"id:{SECRET}"]) == 1
    told = capsys.readouterr().err
    assert "the client does not exist" in told
    assert "s3cr3t" not in told
