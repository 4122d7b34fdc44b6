"""The options that every command shares, after the command and before it."""

from __future__ import annotations

import logging
import re

import pytest

from dkimctl.cli.main import run


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty home, without settings of the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("DKIMCTL_PROFILE", "DKIMCTL_CONFIG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    profiles = "".join(f"  {name}: {{base_url: 'https://{name}.example'}}\n" for name in "ab")
    (tmp_path / "config.yaml").write_text(f"profiles:\n{profiles}", encoding="utf-8")


@pytest.fixture(autouse=True)
def log_off():
    """Undo --verbose, which is for the rest of a process."""
    yield
    for name in ("dkimctl.http", "dkimctl.dns"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)


@pytest.fixture
def told(capsys):
    """Run a command line; gives (exit status, stdout, stderr)."""

    def told(line: str):
        status = run(line.split())
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return told


@pytest.mark.parametrize(
    "line",
    ["status --config config.yaml --profile a", "--config config.yaml status -p a",
     "--config config.yaml -p a status", "-p b --config config.yaml status --profile a",
     "--profile=b status --config config.yaml -pa", "-p nope --config config.yaml status -p a"],
)  # fmt: skip
def test_the_profile_may_be_named_before_the_command_and_the_nearest_wins(told, line):
    assert re.search(r"(?m)^base url +https://a\.example\b", told(line)[1])


@pytest.mark.parametrize(
    "line", ["status --sandbox -p a", "--sandbox status -p a", "-p a status --sandbox"]
)
def test_the_sandbox_and_another_profile_are_an_error(told, line):
    status, _, err = told(f"--config config.yaml {line}")
    assert status == 2
    assert "--sandbox and --profile name two profiles" in err


@pytest.mark.parametrize("command", ["serve", "service client list", "completion bash"])
@pytest.mark.parametrize("option", ["--profile a", "--sandbox", "--config config.yaml"])
def test_a_command_without_a_profile_refuses_one(told, command, option):
    status, out, err = told(f"{option} {command}")
    assert (status, out) == (2, "")
    name = option.split()[0]
    assert err == (
        f"dkimctl: error: {name} has no effect on `dkimctl {command.removesuffix(' bash')}`\n"
        "hint: leave it out: no profile is used\n"
    )


@pytest.mark.parametrize("words", ["--help", "register -h", "ledger", "--color never ledger"])
@pytest.mark.parametrize(
    ("environment", "option", "coloured"),
    [({}, "", False), ({}, "--color always", True), ({"FORCE_COLOR": "1"}, "", True),
     ({"CLICOLOR_FORCE": "1"}, "", True), ({"FORCE_COLOR": "1"}, "--color never", False),
     ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "", False),
     ({"NO_COLOR": "1"}, "--color always", True), ({"GITHUB_ACTIONS": "true"}, "", False),
     ({"TERM": "dumb"}, "--color always", True)],
)  # fmt: skip
def test_help_is_coloured_as_asked(told, monkeypatch, words, environment, option, coloured):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    status, out, err = told(f"{words.replace('--color never', '')} {option}")
    assert (status, err) == (0, "")
    assert ("\x1b[" in out) is coloured
    assert ("\x1b[1;36m" in out) is coloured
