"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dkimctl.cli.output.options import OutputOptions, read_output_options
from dkimctl.cli.session import Session
from dkimctl.errors import naming
from dkimctl.render.renderer import Format, Provider
from dkimctl.text.durations import parse_duration

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FILE", help="Data file of the service (default: in your data directory)."
    ),
]

# What --from of `check-dns` and `show-dns`, and `ledger import`, read.
SAVED_RESULT = (
    "JSON output of register, show-dns, rotate --retired or ledger forget, or a response of the "
    "service; `-` is standard input."
)

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the result to this file, atomically."),
]


class TableOrJson(StrEnum):
    """The values of `status --format` and `ledger forget --format`."""

    TABLE = "table"
    JSON = "json"


_PANEL = "Profile"
_OUTPUT_PANEL = "Output"


def _option(name: str, metavar: str, help_text: str, panel: str = _PANEL, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=help_text, rich_help_panel=panel, **more)


def _output_options(
    *,
    fmt: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(Format)} (default: table on a terminal, else zone).",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = None,
    ttl: Annotated[
        int,
        _option("--ttl", "SECONDS", "TTL of the records.", _OUTPUT_PANEL, min=0, max=2**31 - 1),
    ] = 3600,
    origin: Annotated[
        str | None,
        _option(
            "--origin", "ZONE", "Write names relative to this zone (format zone).", _OUTPUT_PANEL
        ),
    ] = None,
    zone: Annotated[
        list[str] | None,
        _option(
            "--zone",
            "ZONE",
            "Zone of your DNS; repeatable. A record goes into the longest zone that contains it.",
            _OUTPUT_PANEL,
        ),
    ] = None,
    find_zones: Annotated[
        bool,
        typer.Option(
            "--find-zones",
            help="Look up the zones in DNS, by their SOA records.",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = False,
    provider: Annotated[
        Provider | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help=f"Provider of the terraform resources: {', '.join(Provider)} (default: route53).",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        _option("--output", "FILE", "Write the result to this file, atomically.", _OUTPUT_PANEL),
    ] = None,
    output_dir: Annotated[
        Path | None,
        _option("--output-dir", "DIR", "Write one file per zone to this directory.", _OUTPUT_PANEL),
    ] = None,
) -> None:
    """The options of commands that write results; only the signature is used."""


def _shared(
    *,
    profile: Annotated[str | None, _option("--profile", "NAME", "Profile to use.")] = None,
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="Use the embedded service: no account, no network.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    config: Annotated[str | None, _option("--config", "FILE", "Config file to read.")] = None,
    auth_url: Annotated[
        str | None, _option("--auth-url", "URL", "URL that issues access tokens.")
    ] = None,
    base_url: Annotated[str | None, _option("--base-url", "URL", "URL of the service.")] = None,
    client_id: Annotated[str | None, _option("--client-id", "ID", "Client ID.")] = None,
    credential_store: Annotated[
        str | None,
        _option("--credential-store", "keyring|file", "Where to store the secret and token."),
    ] = None,
    batch_size: Annotated[
        str | None, _option("--batch-size", "N", "Domains per request (default: 50).")
    ] = None,
    concurrency: Annotated[
        str | None, _option("--concurrency", "N", "Number of parallel requests (default: 8).")
    ] = None,
    timeout: Annotated[
        str | None, _option("--timeout", "TIME", "Longest wait for a response (default: 30s).")
    ] = None,
    max_wait: Annotated[
        str | None,
        _option("--max-wait", "TIME", "Longest Retry-After to honour (default: 5m)."),
    ] = None,
    ca_bundle: Annotated[
        str | None,
        _option("--ca-bundle", "FILE", "PEM file of CAs to trust instead of the system's."),
    ] = None,
    proxy: Annotated[str | None, _option("--proxy", "URL", "Proxy for all requests.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log each request to stderr.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")
    ] = False,
) -> None:
    """The options of every service command; only the signature is used."""


def with_session(command: Callable[..., int]) -> Callable[..., int]:
    """Add the shared options to `command`, whose first parameter is a Session.

    If its second parameter is an OutputOptions, add those options too. Typer reads the options
    from the signature, so the returned function has a signature with all of them.
    """
    _, *own = _parameters(command)
    shared = _parameters(_shared)
    output_options = []
    if own and own[0].annotation is OutputOptions:
        own, output_options = own[1:], _parameters(_output_options)

    @functools.wraps(command)
    def run(ctx: typer.Context, **values: Any) -> int:
        flags = {option.name: values.pop(option.name) for option in shared}
        options = {option.name: values.pop(option.name) for option in output_options}
        with Session(flags, ctx.obj) as session:
            if not output_options:
                return command(session, **values)
            return command(session, read_output_options(**options), **values)

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *map(_by_keyword, (*own, *output_options, *shared))]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    return run


def read_duration(option: str, text: str, *, may_be_zero: bool = False) -> timedelta:
    """What `parse_duration` reads. Raises UsageError that names the option."""
    with naming(option):
        return timedelta(seconds=parse_duration(text, may_be_zero=may_be_zero))


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    return [*inspect.signature(function, eval_str=True).parameters.values()]


def examples(*lines: str) -> str:
    """The examples at the end of a command's help; each line is a command."""
    return "\n".join(("[bold]Examples[/]", *(f"  {line}" for line in lines)))


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
