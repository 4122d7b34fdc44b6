"""The command tree as the shells' scripts need it."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer

from dkimctl.cli.completion.tree import describe
from dkimctl.cli.options import App

app = App()


@app.command()
def one(
    limit: Annotated[int, typer.Option("--limit", "-l", help="One.")] = 0,
    shared: Annotated[str, typer.Option("--shared", metavar="STORE", help="Of all.")] = "",
) -> None:
    """Do one thing."""


@app.command()
def two(
    limit: Annotated[list[int] | None, typer.Option("--limit", "-l", help="Two.")] = None,
    shared: Annotated[str, typer.Option("--shared", metavar="STORE", help="Of all.")] = "",
) -> None:
    """Do another."""


@app.command(hidden=True)
def three() -> None:
    """Do what nobody should see."""


def test_options_are_there_once_unless_they_differ():
    tree = describe(typer.main.get_command(app))
    assert [each.path for each in tree.commands] == ["", "one", "two"]
    assert tree.commands[0].commands == ("one", "two")
    assert tree.commands[1].options[:2] == ("limit", "shared")
    assert tree.commands[2].options[:2] == ("limit.2", "shared")
    assert tree.options["shared"] == (("--shared",), "keyring file", False, "Of all.")
    assert tree.options["limit.2"] == (("--limit", "-l"), "", True, "Two.")
    assert {"--limit", "-l", "--shared"} <= set(tree.take_value)
    assert "--quiet" not in tree.take_value


def test_an_option_cannot_take_a_value_in_one_command_only():
    other = App()
    other.command("one")(one)

    @other.command()
    def four(limit: Annotated[bool, typer.Option("--limit")] = False) -> None:
        """Do something else."""

    with pytest.raises(ValueError, match="--limit"):
        describe(typer.main.get_command(other))
