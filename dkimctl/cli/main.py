"""The root command: imports the command that is asked for, and turns errors into exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from dkimctl import __version__
from dkimctl.cli.options import COMMON_PANEL, App, Group, examples
from dkimctl.cli.output.next_steps import given_options
from dkimctl.cli.output.streams import Color, Reporter, open_missing_streams, show_lines, write
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, OutputError, UsageError

# By panel of the help. Each is a module of dkimctl.cli.commands. `rotate` takes a selection as well
# as the second word of another command.
_PANELS = {
    "Start": ("init", "doctor"),
    "Account": ("login", "logout", "status", "profile"),
    "Domains": (
        "list", "overview", "register", "show-dns", "publish", "handoff", "check-dns", "verify",
        "rotate", "rotate run", "ledger",
    ),
    "Scripts": ("token", "api", "schema", "completion"),
    "Embedded service": ("serve", "service"),
}  # fmt: skip
# Of commands that stand in the module of another.
_MODULES = {"logout": "login", "token": "api"}
COMMANDS = {name: panel for panel, names in _PANELS.items() for name in names}

SHORT_FORMAT = "-[nqvy]*f"  # also after the letters of flags, such as in -nf


class _Root(Group):
    """The root: imports only the command it runs, because importing all is slow."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # for the list and for suggestions; see get_command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, rest = split_command(args, COMMANDS, self.params)
        if name != args[0]:
            return name, self.get_command(ctx, name), rest
        if f"{name} run" in COMMANDS and rest:  # it takes the word for a selection
            from dkimctl.cli.removed import replacement

            if hint := replacement(f"dkimctl {name}", rest[0]):
                raise UsageError("no such command", hint=hint)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        words = super().shell_complete(ctx, incomplete)
        return [word for word in words if " " not in word.value]  # `rotate run` is two words

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = _MODULES.get(cmd_name, re.sub("[- ]", "_", cmd_name))
        module = importlib.import_module(f"dkimctl.cli.commands.{name}")
        command: Any = typer.main.get_command(module.app)
        command = getattr(command, "commands", {}).get(cmd_name, command)
        command.name = cmd_name
        command.rich_help_panel = COMMANDS[cmd_name]
        return command


def _show_version(ctx: typer.Context, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        write([f"dkimctl {__version__}\n"])
        raise typer.Exit


app = App(
    name="dkimctl",
    cls=_Root,
    epilog=examples(
        "dkimctl register --sandbox domains.example.yaml",
        "dkimctl show-dns --sandbox",
        "dkimctl register --help",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def dkimctl(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 - `_show_version` takes it
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Show the version and exit.",
            is_eager=True,
            callback=_show_version,
            rich_help_panel=COMMON_PANEL,
        ),
    ] = False,
) -> int:
    """Register domains for DKIM signing, publish their DNS records, check that the right keys are
    there, and replace old keys.
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.OK
    from dkimctl.cli.guide import show_guide
    from dkimctl.cli.session import open_session

    return show_guide(open_session(ctx))


def root_command() -> Any:
    """The root of the command tree."""
    return typer.main.get_command(app)


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit status. All errors are caught here."""
    open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # What must be known of the command line even if it cannot be parsed.
    fmt = last_value(args, "--format", SHORT_FORMAT)
    color = next((one for one in Color if one == last_value(args, "--color")), Color.AUTO)
    reporter = Reporter(as_json=fmt == "json", color=color)
    try:
        try:
            result = root_command().main(
                list(args), prog_name="dkimctl", standalone_mode=False, obj=reporter
            )
        except (KeyboardInterrupt, typer.Abort):
            raise Interrupted from None
        if result == ExitCode.INTERRUPTED:  # Typer caught Ctrl-C
            raise Interrupted
        status = int(result or ExitCode.OK)
    except Exception as error:  # noqa: BLE001 - a traceback helps only developers
        if os.environ.get("DKIMCTL_DEBUG") == "1":
            import traceback

            show_lines(traceback.format_exc())
        if isinstance(error, TyperException):  # there was no session to know them
            flags = {
                "profile": last_value(args, "--profile", "-[nqvy]*p"),
                "sandbox": "--sandbox" in args,
                "config": last_value(args, "--config"),
            }
            reporter.command_options = given_options(flags, os.environ)
        reported = _as_dkimctl_error(error)
        reporter.error(reported)
        status = reported.exit_code
        # A monitoring plugin answers as one, even if it fails.
        if "check-dns" in args and fmt == "nagios":
            from dkimctl.render.monitoring import State, unknown_line

            with suppress(OutputError):
                write([unknown_line(reported.message)])
            status = State.UNKNOWN
    reporter.close()
    return int(status)


def _as_dkimctl_error(error: Exception) -> DkimctlError:
    if isinstance(error, DkimctlError):
        return error
    if isinstance(error, TyperException):
        from dkimctl.cli.usage_errors import usage_error

        return usage_error(error)
    if isinstance(error, MemoryError):
        return DkimctlError("out of memory", hint="end other programs, or select fewer domains")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        hint = "raise the limit, such as with `ulimit -n 4096`, or end other programs"
        return DkimctlError("too many open files", hint=hint)
    # Without the error's own text, which may contain anything.
    return DkimctlError(
        f"a defect in dkimctl: {type(error).__name__}",
        hint="run it again with DKIMCTL_DEBUG=1 and report the traceback",
    )


def split_command(
    args: Sequence[str], commands: Container[str], options: Iterable[Any]
) -> tuple[str, list[str]]:
    """The name of the command that `args` begin with, which may have two words, and what follows.

    Between the two, `options` may stand, which are those of all commands.
    """
    first, *rest = args
    takes_value = {name: not option.is_flag for option in options for name in option.opts}
    at = 0
    while at < len(rest) and (name := rest[at].partition("=")[0]) in takes_value:
        at += 2 if takes_value[name] and name == rest[at] else 1
    two = " ".join([first, *rest[at : at + 1]])
    return (two, rest[:at] + rest[at + 1 :]) if two in commands else (first, rest)


def last_value(args: Iterable[str], option: str, short: str | None = None) -> str | None:
    """The last value of an option; `short` is a pattern of its short form."""
    value = None
    words = iter(args)
    for word in words:
        if word == "--":
            break
        name, equals, attached = word.partition("=")
        if name == option:
            value = attached if equals else next(words, None)
        elif short and (found := re.match(short, word)):
            value = word[found.end() :] or next(words, None)
    return value
