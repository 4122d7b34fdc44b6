"""The root of the command line: finds the command, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from dkimctl import __version__
from dkimctl.cli.options import examples
from dkimctl.cli.output.streams import Reporter, open_missing_streams, show_lines, write
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, UsageError

# Each is a module of this package, imported when its command is asked for.
COMMANDS = (
    "login",
    "logout",
    "status",
    "token",
    "register",
    "show-dns",
    "check-dns",
    "rotate",
    "ledger",
    "api",
    "serve",
    "service",
    "completion",
)


_EXTRA = r"(unexpected extra argument)\S* .*"
COMPLETE_VARIABLE = "_DKIMCTL_COMPLETE"  # how a shell's completion script asks


class LazyGroup(TyperGroup):
    """A group whose commands are imported one by one, for the sake of start-up."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # to be listed and suggested; get_command gives the rest

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dkimctl.cli.commands.{cmd_name.replace('-', '_')}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "dkimctl register --sandbox domains.example.yaml", "dkimctl show-dns --sandbox"
    ),
)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Register domains for DKIM signing, carry the records into DNS, and know that the right
    keys are published.
    """
    if version:
        write([f"dkimctl {__version__}\n"])
    elif ctx.invoked_subcommand is None:
        ctx.get_help()  # writes it as well, in this markup mode


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit status. The only place that catches errors."""
    open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        _escape_unencodable(stream)
    reporter = Reporter(as_json=_wants_json(args))
    try:
        status = _dispatch(args, reporter)
    except Exception as error:  # noqa: BLE001 - nobody but us is helped by a traceback
        _debug()
        told = _told(error)
        reporter.error(told)
        status = told.exit_code
    reporter.close()
    return int(status)


def _dispatch(args: Sequence[str], reporter: Reporter) -> int:
    if COMPLETE_VARIABLE in os.environ:
        typer.completion.completion_init()  # type: ignore[attr-defined]
    command = typer.main.get_command(app)
    try:
        result = command.main(list(args), prog_name="dkimctl", standalone_mode=False, obj=reporter)
    except (KeyboardInterrupt, typer.Abort):
        raise Interrupted from None
    if result == ExitCode.INTERRUPTED:  # so Typer says that Ctrl-C was pressed
        raise Interrupted
    return int(result or ExitCode.OK)


def _told(error: Exception) -> DkimctlError:
    """What people are told of an error."""
    if isinstance(error, DkimctlError):
        return error
    if isinstance(error, TyperException):
        return _usage_error(error)
    return _defect(error)


def _usage_error(error: TyperException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dkimctl"
    text = " ".join(error.format_message().split()).rstrip(".")
    text = re.sub(_EXTRA, r"\1", text)  # a word too many may be a secret
    return UsageError(text[:1].lower() + text[1:], hint=f"run `{path} --help`")


def _defect(error: Exception) -> DkimctlError:
    # Not the error's own text: nobody knows what it holds.
    return DkimctlError(
        f"a defect in dkimctl: {type(error).__name__}",
        hint="run again with DKIMCTL_DEBUG=1 and report what it shows",
    )


def _debug() -> None:
    if os.environ.get("DKIMCTL_DEBUG") == "1":
        import traceback

        show_lines(traceback.format_exc())


def _wants_json(args: Sequence[str]) -> bool:
    """Whether errors are to be JSON; asked of the bare words, since their parsing may fail."""
    return ("--format", "json") in itertools.pairwise(args) or "--format=json" in args


def _escape_unencodable(stream: TextIO) -> None:
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
