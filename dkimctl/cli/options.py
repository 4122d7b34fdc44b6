"""The options that the commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dkimctl.cli.session import Session
from dkimctl.render.formats import Format

FormatOption = Annotated[
    Format | None, typer.Option("--format", help="By default table on a terminal, else zone.")
]
TtlOption = Annotated[
    int, typer.Option("--ttl", min=0, max=2**31 - 1, metavar="SECONDS", help="The TTL in zone.")
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FILE", help="The service's data file; by default in your data directory."
    ),
]

_PANEL = "Profile"


def _option(name: str, metavar: str, help_text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help_text, rich_help_panel=_PANEL)


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

    Typer reads the options off the signature, so the result has one that holds both.
    """
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(_shared, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(ctx: typer.Context, **values: Any) -> int:
        flags = {option.name: values.pop(option.name) for option in shared}
        with Session(flags, ctx.obj) as session:
            return command(session, **values)

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *map(_by_keyword, (*own, *shared))]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    return run


def examples(*lines: str) -> str:
    """The examples that close a command's help: each a line to type."""
    return "\n".join(("[bold]Examples[/]", *(f"  {line}" for line in lines)))


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
