"""The options that the commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dkimctl.cli.output.options import OutputOptions, read_output_options
from dkimctl.cli.session import Session
from dkimctl.render.renderer import Format, Provider

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FILE", help="The service's data file; by default in your data directory."
    ),
]

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
            help=f"{', '.join(Format)}; by default table on a terminal, else zone.",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = None,
    ttl: Annotated[
        int,
        _option("--ttl", "SECONDS", "The TTL of the records.", _OUTPUT_PANEL, min=0, max=2**31 - 1),
    ] = 3600,
    origin: Annotated[
        str | None,
        _option("--origin", "ZONE", "Write names relative to it (zone).", _OUTPUT_PANEL),
    ] = None,
    zone: Annotated[
        list[str] | None,
        _option(
            "--zone",
            "ZONE",
            "A zone of your DNS, once for each; a record goes into the longest that contains it.",
            _OUTPUT_PANEL,
        ),
    ] = None,
    find_zones: Annotated[
        bool,
        typer.Option(
            "--find-zones",
            help="Look the zones up in DNS, by their SOA records.",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = False,
    provider: Annotated[
        Provider | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help=f"Whose resources terraform writes: {', '.join(Provider)} (default: route53).",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        _option("--output", "FILE", "Write the result there, whole or not at all.", _OUTPUT_PANEL),
    ] = None,
    output_dir: Annotated[
        Path | None,
        _option("--output-dir", "DIR", "Write a file for each zone there.", _OUTPUT_PANEL),
    ] = None,
) -> None:
    """What the commands that show results take; only the signature counts."""


def _shared(
    *,
    profile: Annotated[str | None, _option("--profile", "NAME", "Use this profile.")] = None,
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="Use the embedded service: no account, no network.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    config: Annotated[str | None, _option("--config", "FILE", "Read this config file.")] = None,
    auth_url: Annotated[
        str | None, _option("--auth-url", "URL", "Where access tokens are issued.")
    ] = None,
    base_url: Annotated[str | None, _option("--base-url", "URL", "Where the service is.")] = None,
    client_id: Annotated[str | None, _option("--client-id", "ID", "The client ID.")] = None,
    credential_store: Annotated[
        str | None,
        _option("--credential-store", "keyring|file", "Where secret and token are kept."),
    ] = None,
    batch_size: Annotated[
        str | None, _option("--batch-size", "N", "Domains in one request (default: 50).")
    ] = None,
    concurrency: Annotated[
        str | None, _option("--concurrency", "N", "Requests at the same time (default: 8).")
    ] = None,
    timeout: Annotated[
        str | None, _option("--timeout", "TIME", "Wait this long for an answer (default: 30s).")
    ] = None,
    max_wait: Annotated[
        str | None,
        _option("--max-wait", "TIME", "Wait this long when the service asks to (default: 5m)."),
    ] = None,
    ca_bundle: Annotated[
        str | None, _option("--ca-bundle", "FILE", "Certificates (PEM) to trust instead.")
    ] = None,
    proxy: Annotated[str | None, _option("--proxy", "URL", "Send requests through it.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log each request on stderr.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")] = False,
) -> None:
    """What every service command takes beside its own options; only the signature counts."""


def with_session(command: Callable[..., int]) -> Callable[..., int]:
    """Give `command`, whose first parameter is a Session, the shared options as well.

    If its second is an OutputOptions, it gets those options too. Typer reads the options off the
    signature, so the result has one that holds all.
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
            given = [read_output_options(**options)] if output_options else []
            return command(session, *given, **values)

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *map(_by_keyword, (*own, *output_options, *shared))]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    return run


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    return [*inspect.signature(function, eval_str=True).parameters.values()]


def examples(*lines: str) -> str:
    """The examples that close a command's help: each a line to type."""
    return "\n".join(("[bold]Examples[/]", *(f"  {line}" for line in lines)))


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
