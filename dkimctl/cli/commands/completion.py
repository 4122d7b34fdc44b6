"""`dkimctl completion`: completion scripts for shells."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dkimctl.cli.command import App
from dkimctl.cli.main import COMPLETE_VARIABLE
from dkimctl.cli.options.shared import examples
from dkimctl.cli.output.streams import write

app = App()


class Shell(StrEnum):
    """The supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(
    epilog=examples(
        "dkimctl completion bash > ~/.local/share/bash-completion/completions/dkimctl",
        "dkimctl completion fish > ~/.config/fish/completions/dkimctl.fish",
    )
)
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a shell's completion script."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="dkimctl", complete_var=COMPLETE_VARIABLE, shell=shell)
    write([script + "\n"])
