"""The commands that notes and hints name run as they stand."""

from __future__ import annotations

import sys

import pytest

from dkimctl.cli import next_steps

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="quoted for another shell")


@pytest.mark.parametrize(
    ("files", "domains", "words"),
    [(["-"], [], ""), (["a.yaml"], [], " a.yaml"), (["list"], [], " ./list"),
     (["my list.yaml"], [], " 'my list.yaml'"),
     (["a.yaml", "b.csv", "list"], ["a.example"], " a.yaml b.csv ./list a.example"),
     (["a.yaml", "-"], [], ""), ([], ["a.example", "b.example"], " a.example b.example"),
     (["a.yaml"], [f"d{number}.example" for number in range(6)], "")],
)  # fmt: skip
def test_spec_files_and_domains_are_selected(files, domains, words):
    check = next_steps.wait_for(next_steps.select_specs(files, domains))
    assert check == f"`dkimctl check-dns{words} --wait 30m`"


def test_what_is_retired_is_forgotten_as_it_was_selected():
    assert "forget '*' --output" in next_steps.forget(())
    with_options = next_steps.forget(["*.example.com"], "--assume-successors")
    assert "forget '*.example.com' --assume-successors --output" in with_options


def test_the_same_command_is_quoted_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dkimctl", "register", "-n", "my list.yaml"])
    assert next_steps.same_command(without=["-n"]) == "dkimctl register 'my list.yaml'"
