"""`dkimctl completion`: completion scripts for shells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from dkimctl.cli.completion.scripts import INSTALLATIONS, Shell, script
from dkimctl.cli.options import App, examples
from dkimctl.cli.output.streams import write

app = App()


def _instructions() -> Iterator[str]:
    """How to install the scripts, as lines of a shell."""
    for shell, installations in INSTALLATIONS.items():
        for place, commands in installations:
            yield f"# {shell}{place}"
            yield from commands


@app.command(epilog=examples(*_instructions()))
def completion(
    ctx: typer.Context, shell: Annotated[Shell, typer.Argument(help="The shell.")]
) -> None:
    """Print a shell's completion script.

    The examples install it for you alone. Start a new shell afterwards.
    """
    write([script(shell, ctx.find_root().command)])
    if sys.stdout.isatty():
        ctx.obj.note("dkimctl: to install this script (--help has other places for it), run:")
        for command in INSTALLATIONS[shell][0].commands:
            ctx.obj.note(f"  {command}")
