"""The root command: imports the command that is asked for, and turns errors into exit codes."""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, suppress
from typing import Annotated, Any

import typer
from typer import _completion_classes
from typer.completion import shell_complete
from typer.core import TyperCommand
from typer.exceptions import TyperException

from dkimctl import __version__
from dkimctl.cli.options import COMMON_PANEL, App, Group, option
from dkimctl.cli.report import Color, Reporter, open_missing_streams, write, write_line
from dkimctl.errors import DkimctlError, ExitCode, Interrupted, OutputError, UsageError
from dkimctl.text import printable

# By panel of the help, each with the first sentence of its own help, so that to list them imports
# none. Each is a module of dkimctl.cli.commands. `rotate` takes a selection as well as the second
# word of another command.
_PANELS = {
    "Start": {
        "init": "Write a first config file and a first spec file.",
        "doctor": "Check the set-up: what is wrong, and what to do about it.",
        "help": "Show the help of a command, or of the profile settings.",
    },
    "Account": {
        "login": "Log in: verify a client ID and secret, and store them.",
        "logout": "Log out: delete the secret and token of a profile.",
        "status": "Show the profile, and where each of its settings comes from.",
        "profile": "List the profiles, choose one, or delete one.",
    },
    "Domains": {
        "list": "List the registered keys, and what comes next for each.",
        "overview": "Show what is urgent, what comes next, and how old the keys are.",
        "history": "Show what happened to the keys, when, and by whom; newest last.",
        "register": "Register the domains of spec files, and show their DNS records.",
        "show-dns": "Show the DNS records of the registered keys.",
        "publish": "Put the registered records into DNS.",
        "handoff": "Write a sheet for the owner of the DNS: what to add, and how.",
        "check-dns": "Check that DNS has the registered records. No token is needed.",
        "verify": "Verify the DKIM signatures of received mail, and their keys.",
        "reports": "Read DMARC reports: with which keys mail passed, and failed.",
        "rotate": "Print specs (YAML) for the successors of old keys.",
        "rotate run": "Replace old keys, publish, check, and remove retired records.",
        "timer": "Install a systemd timer or cron line for `rotate run`.",
        "ledger": "Import registrations into the ledger, forget retired ones, or copy it.",
    },
    "Scripts": {
        "token": "Print a valid access token.",
        "api": "Send any bearer-protected request, and print the response.",
        "schema": "Print the JSON Schema of spec files, or of the config file.",
        "completion": "Print a shell's completion script.",
    },
    "Embedded service": {
        "serve": "Run the embedded service over HTTP, until Ctrl-C.",
        "service": "Manage the embedded service: its clients and registrations.",
    },
}
COMPLETION_VARIABLE = "_DKIMCTL_COMPLETE"  # by which a shell's script asks
# Of commands that stand in the module of another.
_MODULES = {"logout": "login", "token": "api", "schema": "completion"}
COMMANDS = {name: panel for panel, helps in _PANELS.items() for name in helps}

# Commands that people look for.
_EXPLAINED = dict.fromkeys(
    ("unregister", "deregister", "delete", "remove", "revoke"),
    "the service has no call to unregister a key: replace it with `dkimctl rotate DOMAIN`; "
    "`dkimctl rotate --retired` lists the records to delete from DNS, and `dkimctl ledger forget "
    "DOMAIN` removes retired keys from the ledger",
) | {"version": "run `dkimctl --version`"}
SHORT_FORMAT = "-[nqvy]*f"  # also after the letters of flags, such as in -nf
_SECRETS = ("--secret", "--client-secret", "--password", "--token", "--access-token")
# Commands, and options of commands, without `dkimctl`.
REMOVED = {
    "service backup": 'copy the data with `sqlite3 FILE ".backup COPY"`, or with `pg_dump`',
    "service restore": "copy the backup to where the data was, or use `pg_restore`",
    "service audit": "the log of `dkimctl serve` names client and operation of each request",
    "rotate status": "`dkimctl list` has the columns NEXT and DUE, `dkimctl overview` the timeline",
    "serve --faults": "put a proxy that injects faults between the client and the service",
    "serve --key-pool": "leave it out: keys are made when a request needs them",
    "serve --log-format": "leave it out: the log has one line for each request",
    "serve --metrics-from": "write --metrics-bind ADDRESS, which serves only /metrics",
    "publish --retired": "run `dkimctl rotate run`, which removes the retired records",
    "register --allow-wildcard-shadowing": "register first, then run `dkimctl publish "
    "--allow-wildcard-shadowing`",
    "publish --assume-successors": "it is an option of `dkimctl rotate --retired`",
    "init --no-config": "leave it out: a config file that exists stays as it is",
    "list --filter": "write --stage or --state, or use jq on the output of --format json",
}
REMOVED |= {
    f"register {option.split()[0]}": f"register first, then run `dkimctl show-dns FILE {option}`"
    for option in ("--zone ZONE", "--find-zones", "--origin ZONE", "--ttl SECONDS",
                   "--provider NAME", "--output-dir DIR")
}  # fmt: skip


class _Root(Group):
    """The root: imports only the command it runs, because importing all is slow."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # for lists and suggestions: see get_command
        self._is_listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, rest = split_command(args, self.params)
        if name != args[0]:
            return name, self.get_command(ctx, name), rest
        # `rotate` would take the word for a selection.
        if name == "rotate" and (hint := _replacement(" ".join(args[:2]))):
            raise UsageError("no such command", hint=hint)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        words = super().shell_complete(ctx, incomplete)
        return [word for word in words if " " not in word.value]  # `rotate run` is two words

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        panel = COMMANDS[cmd_name]
        if self._is_listing:
            return TyperCommand(cmd_name, help=_PANELS[panel][cmd_name], rich_help_panel=panel)
        name = _MODULES.get(cmd_name, re.sub("[- ]", "_", cmd_name))
        module = importlib.import_module(f"dkimctl.cli.commands.{name}")
        command: Any = typer.main.get_command(module.app)
        command = getattr(command, "commands", {}).get(cmd_name, command)
        command.name, command.rich_help_panel = cmd_name, panel
        return command


def _show_version(ctx: typer.Context, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        write([f"dkimctl {__version__}\n"])
        raise typer.Exit


app = App(
    "dkimctl register --sandbox domains.example.yaml", "dkimctl show-dns --sandbox",
    "dkimctl register --help",
    name="dkimctl", cls=_Root, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


@app.callback()
def dkimctl(
    ctx: typer.Context,
    version: Annotated[bool, option("--version -V",  # noqa: ARG001 - `_show_version` takes it
        "Show the version and exit.", is_eager=True, callback=_show_version,
        rich_help_panel=COMMON_PANEL)] = False,
) -> int:  # fmt: skip
    """Register domains for DKIM signing, publish their DNS records, check that the right keys are
    there, and replace old keys.
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.OK
    from dkimctl.cli import guide, session

    return guide.show_guide(session.open_session(ctx))


def root_command() -> Any:
    return typer.main.get_command(app)


def complete() -> int:
    """Answer a shell's script; whatever goes wrong, with no message in the middle of typing."""
    with redirect_stderr(io.StringIO()), suppress(Exception):
        _completion_classes.completion_init()
        # Help has no markup. rich would take longer than all the rest, and break long lines.
        _completion_classes._sanitize_help_text = lambda text: text
        asked = os.environ[COMPLETION_VARIABLE]
        context = {"obj": Reporter(quiet=True)}
        shell_complete(root_command(), context, "dkimctl", COMPLETION_VARIABLE, asked)
    return 0


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit status. All errors are caught here."""
    open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # What must be known of the command line even if it cannot be parsed.
    fmt = last_value(args, "--format", SHORT_FORMAT)
    color = next((color for color in Color if color == last_value(args, "--color")), Color.AUTO)
    reporter = Reporter(as_json=fmt == "json", color=color)
    try:
        try:
            settings = {"prog_name": "dkimctl", "standalone_mode": False, "obj": reporter}
            result = root_command().main(list(args), **settings)
        except (KeyboardInterrupt, typer.Abort):
            raise Interrupted from None
        if result == ExitCode.INTERRUPTED:  # Typer caught Ctrl-C
            raise Interrupted
        status = int(result or ExitCode.OK)
    except Exception as error:  # noqa: BLE001 - a traceback helps only developers
        if os.environ.get("DKIMCTL_DEBUG") == "1":
            for line in traceback.format_exc().splitlines():  # with text of others
                write_line(printable(line))
        reported = _as_dkimctl_error(error)
        reporter.error(reported)
        status = reported.exit_code
        # A monitoring plugin answers as one, even if it fails.
        if "check-dns" in args and fmt == "nagios":
            from dkimctl.formats.monitoring import NagiosState, unknown_line

            with suppress(OutputError):
                write([unknown_line(reported.message)])
            status = NagiosState.UNKNOWN
    reporter.close()
    return int(status)


def _as_dkimctl_error(error: Exception) -> DkimctlError:
    if isinstance(error, DkimctlError):
        return error
    if isinstance(error, TyperException):
        return _usage_error(error)
    if isinstance(error, MemoryError):
        hint = "select fewer domains, end other programs, or raise the limit (`ulimit -v`, "
        hint += "MemoryMax= of systemd, --memory of a container)"
        failure = DkimctlError("not enough memory", hint=hint)
        failure.code = "memory"
        return failure
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        hint = "raise the limit, such as with `ulimit -n 4096`, or end other programs"
        return DkimctlError("too many open files", hint=hint)
    # Without the error's own text, which may contain anything.
    hint = "run it again with DKIMCTL_DEBUG=1 and report the traceback"
    return DkimctlError(f"a defect in dkimctl: {type(error).__name__}", hint=hint)


def split_command(args: Sequence[str], options: Iterable[Any]) -> tuple[str, list[str]]:
    """The command that `args` begin with, which may have two words, and what follows.

    Between the two may stand `options`, which are those of all commands.
    """
    first, *rest = args
    takes_value = {name: not option.is_flag for option in options for name in option.opts}
    at = 0
    while at < len(rest) and (name := rest[at].partition("=")[0]) in takes_value:
        at += 2 if takes_value[name] and name == rest[at] else 1
    two = " ".join([first, *rest[at : at + 1]])
    return (two, rest[:at] + rest[at + 1 :]) if two in COMMANDS else (first, rest)


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
        elif short and (match := re.match(short, word)):
            value = word[match.end() :] or next(words, None)
    return value


def _usage_error(error: Any) -> UsageError:
    """Typer's error, known by the name of its class, without a value that was typed."""
    kind, text = type(error).__name__, str(error.format_message())
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "dkimctl"
    params = context.command.params if context else ()
    hint = f"run `{path} --help`"
    if kind == "NoSuchOption":
        typed = error.option_name
        is_shown = re.fullmatch(r"--[a-z-]{1,30}|-[a-zA-Z]", typed)
        text = f"no such option: {typed}" if is_shown else "no such option"
        formats = [word for param in params if "--format" in param.opts for word in _choices(param)]
        if replaced := _replacement(f"{path} {typed}".removeprefix("dkimctl ")):
            hint = replaced
        elif typed in _SECRETS:
            hint = "no option takes a secret: `dkimctl login` asks for it, or reads --secret-stdin"
        elif typed.removeprefix("--") in formats:
            hint = f"write --format {typed.removeprefix('--')}"
        elif typed in ("-o", "--output") and formats:
            has_page = any("--html" in param.opts for param in params)
            hint = f"write --format {' or '.join(formats)}{', or --html FILE' * has_page}"
        else:  # without the dashes, which make short words alike
            bare = {name.lstrip("-"): name for name in error.possibilities or ()}
            if alike := difflib.get_close_matches(typed.lstrip("-"), bare, 1, 0.7):
                hint = f"did you mean {bare[alike[0]]}?"
    elif kind == "BadParameter":  # the option without its short form, or the argument
        is_option = error.param.param_type_name == "option"
        name = f"'{error.param.opts[0]}'" if is_option else error.param.get_error_hint(context)
        taken, expected = error.param.type, ""
        if choices := _choices(error.param):
            expected = f": it is not one of {', '.join(choices)}"
        elif getattr(taken, "min", None) is not None:
            limits = f"{taken.min} up" if taken.max is None else f"{taken.min} to {taken.max}"
            expected = f": it is not a whole number from {limits}"
        text = f"invalid value for {name}{expected}"
    elif kind == "MissingParameter":  # the first example of the command's help
        if example := re.search(r"\n(dkimctl [^>\n]*[^>\n ])", context.command.epilog or ""):
            hint = f"for example, `{example[1]}`"
    elif unknown := re.match(r"(?s)No such command '(.*?)'\.", text):
        words = f"{path} {unknown[1]}".removeprefix("dkimctl ")
        near = re.search(r"\. Did you mean '([a-z -]+)'(?:, '[a-z -]+')*\?\Z", text)
        suggested = f"did you mean `{path} {near[1]}`?" if near else hint
        hint = _replacement(words) or _EXPLAINED.get(words) or suggested
        is_shown = re.fullmatch(r"[a-z][a-z-]{0,20}", unknown[1])
        text = f"no such command: {unknown[1]}" if is_shown else "no such command"
    elif kind == "BadOptionUsage":
        metavars = [param.metavar for param in params if error.option_name in param.opts]
        hint = " ".join(["write", error.option_name, *filter(None, metavars)])
    elif text.startswith("Got unexpected extra argument"):
        text = "got unexpected extra argument"
    text = " ".join(text.split()).rstrip(".")
    return UsageError(text[:1].lower() + text[1:], hint=hint)


def _choices(option: Any) -> list[str]:
    return [str(choice) for choice in getattr(option.type, "choices", None) or ()]


def _replacement(words: str) -> str:
    """What replaces a command or an option; "" if it was not removed."""
    return f"it was removed: {REMOVED[words]}" if words in REMOVED else ""
