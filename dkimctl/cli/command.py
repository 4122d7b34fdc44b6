"""What all commands and groups have in common: options, help, and how they are declared."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from dkimctl.cli.options.common import (
    COMMON_PANEL,
    common_options,
    refuse_profile,
    session_options,
    take_flags,
)
from dkimctl.cli.output.streams import Reporter, write


class Command(TyperCommand):
    """A command, with the options that all commands share; see `with_session`."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        shown = getattr(self.callback, "shown_options", None)
        self.takes_session = shown is not None
        self._common = (
            common_options(takes_session=False) if shown is None else session_options(shown)
        )
        self.params = [*self.params, *getattr(self.callback, "options", ()), *self._common]

    def invoke(self, ctx: Any) -> Any:
        flags = take_flags(ctx, self._common)
        if self.takes_session:
            ctx.params["flags"] = flags
        else:
            refuse_profile(flags, ctx.command_path)
            ctx.obj.quiet = bool(flags["quiet"])
            ctx.obj.verbose = bool(flags["verbose"])
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{([\w.]+)\}$", r"\1", piece) for piece in pieces]  # FILE, not {FILE}

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        return _in_common_panel(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.help = _unwrapped(self.help)
        with _writing_help(ctx.obj):
            super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group, which takes the common options too. See `without_command`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**(settings | {"invoke_without_command": True}))
        commands: Any = self.commands.values()
        self.takes_session = any(command.takes_session for command in commands)
        if commands:
            self.params = [*self.params, *common_options(takes_session=self.takes_session)]

    def invoke(self, ctx: Any) -> Any:
        result = super().invoke(ctx)
        return self.without_command(ctx) if ctx.invoked_subcommand is None else result

    def without_command(self, ctx: Any) -> Any:
        """What to do if no command follows: show the help."""
        return _show_help(ctx, None, True)

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        return _in_common_panel(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with _writing_help(ctx.obj):
            super().format_help(ctx, formatter)


class App(typer.Typer):
    """Declares a command, or a group of commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(add_completion=False, cls=Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=Command, **settings)


def _in_common_panel(option: TyperOption | None) -> TyperOption | None:
    if option is not None:
        option.rich_help_panel = COMMON_PANEL
        option.callback = _show_help
    return option


def _show_help(ctx: Any, _option: object, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.get_help()  # also prints it, in this markup mode
        raise typer.Exit


def _unwrapped(text: str | None) -> str:
    """Each paragraph on one line, for Typer to wrap, unless it has indented lines."""
    paragraphs = (text or "").split("\n\n")
    return "\n\n".join(
        paragraph if "\n " in paragraph else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    )


@contextmanager
def _writing_help(reporter: Reporter) -> Iterator[None]:
    """Have Typer colour its help as `reporter` does, and keep it narrow.

    What it prints is written as results are: a reader that goes away is not an error.
    """
    from typer import rich_utils

    colour = reporter.shows_colour(sys.stdout)
    rich_utils.FORCE_TERMINAL = colour
    rich_utils.COLOR_SYSTEM = "standard" if colour else None
    rich_utils.RANGE_STRING = ""  # it stands beside the metavar, and takes room from all texts
    # rich has no argument for it that Typer passes on.
    no_color = os.environ.pop("NO_COLOR", None)
    # As stdout, since rich draws what its encoding can hold.
    text = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding, sys.stdout.errors, newline="")
    try:
        with redirect_stdout(text):
            yield
    finally:
        if no_color is not None:
            os.environ["NO_COLOR"] = no_color
    text.seek(0)
    write([text.read()])
