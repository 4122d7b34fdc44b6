"""The manual pages, by the programs that people read them with."""

from __future__ import annotations

import subprocess

import pytest

from documents import ROOT
from needs import program

PAGES = sorted((ROOT / "docs" / "man").glob("*.1"))


def run(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(name), *map(str, words)], capture_output=True, encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        ("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"),
        ("mandoc", "-Tlint", "-Wwarning"),
    ],
)
def test_no_reader_has_a_complaint(command):
    done = run(*command, *PAGES)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize(
    "command", [("man", "-E", "UTF-8", "-l"), ("mandoc", "-Tutf8", "-Owidth=80")]
)
def test_commands_can_be_copied_from_a_page(command):
    done = run(*command, ROOT / "docs" / "man" / "dkimctl-rotate.1")
    example = (
        "       dkimctl rotate '*.example.com' --older-than 90d --start-in 7d --selector s%Y%m"
    )
    assert example in done.stdout.splitlines()
    assert "Show the help and exit." in done.stdout
