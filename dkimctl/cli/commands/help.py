"""`dkimctl help`: the help of a command, and of the settings that most commands take."""

from typing import Annotated

import typer

from dkimctl.cli.options import App, argument, settings_help

app = App(takes_profile=False)


def _complete(ctx: typer.Context) -> list[str]:
    return [*getattr(ctx.find_root().command, "commands", ()), "settings"]


@app.command("dkimctl help register", "dkimctl help rotate run", "dkimctl help settings")
def show_help(
    ctx: typer.Context,
    words: Annotated[list[str] | None, argument("[COMMAND]...",
        "A command, or `settings`.", autocompletion=_complete)] = None,
) -> None:  # fmt: skip
    """Show the help of a command, or of the profile settings."""
    root = ctx.find_root()
    if words == ["settings"]:
        command = settings_help()
        command.get_help(typer.Context(command, parent=root, info_name="COMMAND", obj=ctx.obj))
    else:
        root.command.main([*(words or ()), "--help"], "dkimctl", standalone_mode=False, obj=ctx.obj)
