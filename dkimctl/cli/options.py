"""The options that commands share, how a command takes them, and how its help shows them.

The options of `_SHARED` may stand after a command and before it: `dkimctl --sandbox list` is
`dkimctl list --sandbox`. The functions of the commands do not see them: each option puts its value
into the `meta` of Typer's context, from which `open_session` takes them.

A completer only reads: it creates no file, takes no lock, opens no keyring and sends nothing.

Annotations are not postponed here: Typer would evaluate them several times.
"""

import copy
import functools
import io
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from dkimctl.cli.report import Color, write
from dkimctl.errors import UsageError, naming, os_errors_as
from dkimctl.formats.renderer import CheckFormat, Format, KeyFormat
from dkimctl.service.location import (
    DatabaseUrl,
    Location,
    default_location,
    read_client_ids,
    read_location,
)
from dkimctl.settings.profile import known_profiles, require_ledger_account
from dkimctl.text import parse_duration, printable

COMMON_PANEL = "Common options"
MAX_TTL = 2**31 - 1  # RFC 2181, section 8

SETTINGS_PANEL = "Profile settings"
_PROFILE = ("profile", "sandbox", "config")
_STREAMS = ("color", "verbose", "quiet")
_FORMATS = frozenset((*Format, *CheckFormat, "html", "text", "txt", "wide"))
MOST_DOMAINS = 200  # a list that nobody would read further
# No shell expands anything in such a word, or needs quotes for it; and it is not an option.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@%+,-]*", re.ASCII)


def option(names: str, text: str, **more: Any) -> Any:
    """For an annotation: an option such as `--output -o FILE`; a flag has no last word."""
    words, metavar = _declared(names)
    return typer.Option(*words, metavar=metavar, help=text, **more)


def argument(metavar: str, text: str, **more: Any) -> Any:
    """For an annotation: an argument."""
    return typer.Argument(metavar=metavar, help=text, **more)


result_option = functools.partial(option, rich_help_panel="Output")


def _declared(names: str) -> tuple[list[str], str | None]:
    words = names.split()
    return (words, None) if words[-1].startswith("-") else (words[:-1], words[-1])


def _shared(names: str, text: str, **more: Any) -> TyperOption:
    words, metavar = _declared(names)
    return TyperOption(
        param_decls=words, metavar=metavar, is_flag=metavar is None, help=text,
        expose_value=False, callback=_keep, **more,
    )  # fmt: skip


def _keep(ctx: typer.Context, option: TyperOption, value: Any) -> None:
    """Of the same option before and after the command, the one nearest to the command wins."""
    if value not in (None, False):
        ctx.meta[str(option.name)] = value


_setting = functools.partial(_shared, rich_help_panel=SETTINGS_PANEL)
_common = functools.partial(_shared, rich_help_panel=COMMON_PANEL)
_SHARED = (
    _setting("--auth-url URL", "URL that issues access tokens."),
    _setting("--base-url URL", "URL of the service."),
    _setting("--client-id ID", "Client ID."),
    _setting("--credential-store STORE", "keyring or file, for secret and token."),
    _setting("--batch-size N", "Domains per request (default: 50)."),
    _setting("--concurrency N", "Parallel requests (default: 8)."),
    _setting("--timeout TIME", "Longest wait for an answer (default: 30s)."),
    _setting("--max-wait TIME", "Longest total wait for Retry-After (default: 5m)."),
    _setting("--ca-bundle FILE", "PEM file of CAs to trust instead of the system's."),
    _setting("--proxy URL", "Proxy for all requests."),
    _setting("--ledger URL", "PostgreSQL database of a ledger that a team shares."),
    _common("--profile -p NAME", "Profile to use.",
            autocompletion=lambda ctx, _args, _incomplete: complete_profiles(ctx)),
    _common("--sandbox", "Use the embedded service: no account, no network."),
    _common("--config FILE", "Config file to read."),
    # Eager: an invalid value is an error even before --help.
    _common("--color WHEN", f"{', '.join(Color)} (default: auto, on a terminal).", is_eager=True,
            type=typer.main.get_click_type(annotation=Color, parameter_info=typer.Option())),
    _common("--verbose -v", "Log requests and DNS queries; show lists in full."),
    _common("--quiet -q", "Show only warnings and errors."),
)  # fmt: skip
_SETTINGS = tuple(str(each.name) for each in _SHARED if each.rich_help_panel == SETTINGS_PANEL)


def _shared_options(names: Collection[str], *, takes_profile: bool) -> list[TyperOption]:
    """Copies of these options, of which a command with a profile shows others than one without."""
    hidden = _SETTINGS if takes_profile else ("verbose",)
    taken = [copy.copy(option) for option in _SHARED if option.name in names]
    for option in taken:
        option.hidden = option.name in hidden
    return taken


class _Help:
    """Help in the colours of the reporter, kept narrow."""

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        inherited: Any = super()
        option: TyperOption | None = inherited.get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = COMMON_PANEL
            option.callback = _show_help
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        inherited: Any = super()
        try:
            return list(inherited.parse_args(ctx, args))
        except TyperException as error:  # the parser's own do not say of which command they are
            error.ctx = getattr(error, "ctx", None) or ctx  # type: ignore[attr-defined]
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """What it prints is written as results are: a reader that goes away is not an error."""
        from typer import rich_utils

        inherited: Any = super()
        colour = ctx.obj.shows_colour(sys.stdout)
        rich_utils.FORCE_TERMINAL = colour
        rich_utils.COLOR_SYSTEM = "standard" if colour else None
        rich_utils.RANGE_STRING = ""  # it stands beside the metavar, and takes room from all texts
        # rich has no argument for it that Typer passes on.
        no_color = os.environ.pop("NO_COLOR", None)
        # As stdout, since rich draws what its encoding can hold.
        text = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding, sys.stdout.errors, newline="")
        try:
            with redirect_stdout(text):
                inherited.format_help(ctx, formatter)
        finally:
            if no_color is not None:
                os.environ["NO_COLOR"] = no_color
        text.seek(0)
        write([text.read()])


def _show_help(ctx: Any, _option: object, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.get_help()  # also prints it, in this markup mode
        raise typer.Exit


class Command(_Help, TyperCommand):
    """A command; one that works with a profile takes its settings, which `help settings` shows."""

    def __init__(self, name: str | None, *, takes_profile: bool = False, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.takes_profile = takes_profile
        names = (*_SETTINGS, *_PROFILE, *_STREAMS) if takes_profile else _STREAMS
        self.params += _shared_options(names, takes_profile=takes_profile)

    def invoke(self, ctx: Any) -> Any:
        for name in () if self.takes_profile else _PROFILE:
            if name in ctx.meta:
                hint = "leave it out: no profile is used"
                raise UsageError(f"--{name} has no effect on `{ctx.command_path}`", hint=hint)
        ctx.obj.quiet, ctx.obj.verbose = "quiet" in ctx.meta, "verbose" in ctx.meta
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{([\w.]+)\}$", r"\1", piece) for piece in pieces]  # FILE, not {FILE}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Each paragraph on one line, for Typer to wrap, unless it has indented lines.
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(
            text if "\n " in text else text.replace("\n", " ") for text in paragraphs
        )
        super().format_help(ctx, formatter)


class Group(_Help, TyperGroup):
    """A group of commands, which takes the common options, too; by itself it shows its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**(settings | {"invoke_without_command": True}))
        commands: list[Any] = [*self.commands.values()]
        # The root has none yet: it imports them when they are needed.
        self.takes_profile = not commands or any(each.takes_profile for each in commands)
        names = (*_PROFILE, *_STREAMS) if self.takes_profile else _STREAMS
        self.params[:0] = _shared_options(names, takes_profile=self.takes_profile)

    def invoke(self, ctx: Any) -> Any:
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None and self.callback is None:
            _show_help(ctx, None, True)
        return result


class App(typer.Typer):
    """Declares a command, or a group of commands; its help ends with `examples`, each a command."""

    def __init__(self, *examples: str, takes_profile: bool = True, **settings: Any) -> None:
        settings = {"cls": Group, "epilog": _epilog(examples)} | settings
        super().__init__(add_completion=False, **settings)
        self._takes_profile = takes_profile  # as do commands that begin with `open_session`

    def command(self, *examples: Any, **settings: Any) -> Callable[..., Any]:
        declared: Any = functools.partial(Command, takes_profile=self._takes_profile)
        epilog = _epilog(examples)
        if self._takes_profile:
            more = "Also takes the profile settings, such as --timeout: dkimctl help settings"
            epilog = f"{more}\n\n{epilog}"
        return super().command(cls=declared, epilog=epilog, **settings)


def _epilog(examples: Sequence[str]) -> str | None:
    return "\n".join(["[bold]Examples[/]", *examples]) if examples else None


def settings_help() -> TyperCommand:
    """What `dkimctl help settings` shows the help of."""
    text = (
        "Settings of a profile. Every command that works with a profile takes them as options.\n\n"
        "The config file has them with underscores, such as base_url. DKIMCTL_AUTH_URL, "
        "DKIMCTL_BASE_URL, DKIMCTL_CLIENT_ID and DKIMCTL_LEDGER are read from the environment."
    )
    epilog = _epilog(["dkimctl status", "dkimctl register --timeout 60s domains.yaml"])
    command = Command("settings", help=text, epilog=epilog)
    command.params = [*_shared_options(_SETTINGS, takes_profile=False)]
    return command


def refuse_first(*faults: tuple[object, str, str]) -> None:
    """Raise UsageError for the first fault that is there, each with its message and its hint."""
    for is_there, message, hint in faults:
        if is_there:
            raise UsageError(message, hint=hint)


def read_duration(option: str, text: str, *, may_be_zero: bool = False) -> timedelta:
    """What `parse_duration` reads. Raises UsageError that names the option."""
    with naming(option):
        return timedelta(seconds=parse_duration(text, may_be_zero=may_be_zero))


def read_output(text: str) -> Path | None:
    """The file that --output names; None for stdout. Raises UsageError for no file to write."""
    if text in _FORMATS:  # as other programs take it
        option = "--wide" if text == "wide" else f"-f {text}"
        hint = f"did you mean {option}? For a file of that name, write ./{text}"
        raise UsageError(f"in --output: {text} is a file name", hint=hint)
    with naming("--output"):
        return None if text == "-" else read_new_file(text)


def read_new_file(text: str) -> Path:
    """A file to write. Raises UsageError unless it could be written, before anything is done."""
    if not text:
        raise UsageError("the file name is empty", hint="check the variable it comes from")
    path, fault = Path(text), ""
    what = f"cannot write {printable(str(path))}"
    with os_errors_as(UsageError, what, hint="name another file"):
        # What is there and no file, such as /dev/stdout, is written as it is.
        is_replaced = not path.exists() or path.is_file()
        if path.is_dir():
            fault = "it is a directory"
        elif not path.parent.is_dir():
            fault = "its directory does not exist"
        elif is_replaced and not os.access(path.parent, os.W_OK):
            fault = "its directory is not writable"
    if fault:
        raise UsageError(f"{what}: {fault}", hint="create the directory, or name another file")
    return path


def read_data(text: str) -> Location:
    """Where the service's data is, from an option. Raises UsageError."""
    location = read_location(text)
    if isinstance(location, DatabaseUrl) and location.has_password:
        raise UsageError(
            "a password in an option is visible to all users of this machine",
            hint="set DKIMCTL_SERVICE_DATABASE to the URL, or write the password to ~/.pgpass",
        )
    return location


def complete_profiles(ctx: typer.Context) -> list[str]:
    """The profiles of the config file, and those with a login."""
    session = _session(ctx)
    return _plain(known_profiles(session.config, session.logins))


def complete_selection(ctx: typer.Context, incomplete: str) -> list[str]:
    """The registered domains of the profile on the line. Without any, shells offer files."""
    # `rotate` takes a selection, or the second word of another command.
    words = ["run"] if ctx.command.name == "rotate" and not ctx.params["selection"] else []
    with suppress(Exception):
        from dkimctl.ledger.opening import domains_with_prefix

        session = _session(ctx)
        account = require_ledger_account(session.profile)
        if isinstance(path := session.ledger_place, Path):  # a database may be far away
            words += domains_with_prefix(path, *account, incomplete, MOST_DOMAINS)
    return _plain(words)


def complete_clients(ctx: typer.Context) -> list[str]:
    """The clients in the embedded service's data file; a database may be far away."""
    path = ctx.params.get("data") or default_location()
    return _plain(read_client_ids(path.expanduser())) if isinstance(path, Path) else []


def _session(ctx: typer.Context) -> Any:
    """A session with the profile that the line names, before or after the command."""
    from dkimctl.cli.session import open_session

    if config := ctx.meta.get("config"):
        # Shells have not expanded it. Standard input or a pipe would keep them waiting.
        ctx.meta["config"] = os.path.expanduser(config)  # noqa: PTH111 - keeps `//`
        if not Path(ctx.meta["config"]).is_file():
            raise FileNotFoundError
    return open_session(ctx)


def _plain(words: Iterable[str]) -> list[str]:
    return list(filter(_PLAIN.fullmatch, words))


# The formats of answers without a format of their own.
TableOrJson = StrEnum("TableOrJson", ["TABLE", "JSON"])
# What --from of `check-dns` and `show-dns`, and `ledger import`, read.
SAVED_RESULT = "JSON of dkimctl, or a response of the service; `-` is standard input."
_OUTPUT = "File to write (x.json: JSON); `-`: stdout."

TableOrJsonOption = Annotated[TableOrJson | None, option("--format -f FORMAT",
    f"{', '.join(TableOrJson)} (default: table).")]  # fmt: skip
KeyFormatOption = Annotated[KeyFormat | None, option("--format -f FORMAT",
    f"{', '.join(KeyFormat)} (default: table).")]  # fmt: skip
OutputOption = Annotated[Path | None, option("--output -o FILE", _OUTPUT, parser=read_output)]
YesOption = Annotated[bool, option("--yes -y", "Do not ask for confirmation.")]
ALLOW_SHADOWING = "--allow-wildcard-shadowing"
AllowShadowingOption = Annotated[bool, option(ALLOW_SHADOWING,
    "Also publish where a wildcard then no longer answers for the domain.")]  # fmt: skip
AssumeSuccessorsOption = Annotated[bool, option("--assume-successors",
    "Assume that newer keys replace older ones, if that is not recorded.")]  # fmt: skip
# A Location; Typer takes no union of types.
DataOption = Annotated[Any, option("--data --database FILE|URL",
    "Data of the service: a file (default: in your data directory), or the URL of a "
    "PostgreSQL database.", parser=read_data)]  # fmt: skip

# Those of commands that write records; `read_output_options` checks and gathers them.
ResultsOutputOption = Annotated[Path | None, result_option("--output -o FILE",
    _OUTPUT, parser=read_output)]  # fmt: skip
WideOption = Annotated[bool, result_option("--wide",
    "Show all columns, the service's message, and A-labels.")]  # fmt: skip
