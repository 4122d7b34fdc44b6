"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkimctl.cli.options.results import OUTPUT_HELP, read_output, result_options
from dkimctl.cli.output.options import OutputOptions, read_output_options
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError, naming
from dkimctl.render.renderer import KeyFormat
from dkimctl.text.durations import parse_duration

if TYPE_CHECKING:
    from dkimctl.service.database.location import Location


def read_data(text: str) -> Location:
    """Where the service's data is, from an option. Raises UsageError."""
    from dkimctl.service.database.location import DatabaseUrl, read_location

    location = read_location(text)
    if isinstance(location, DatabaseUrl) and location.has_password:
        raise UsageError(
            "a password in an option is visible to all users of this machine",
            hint="set DKIMCTL_SERVICE_DATABASE to the URL, or write the password to ~/.pgpass",
        )
    return location


# A Location; Typer takes no union of types.
DataOption = Annotated[
    Any,
    typer.Option(
        "--data",
        "--database",
        metavar="FILE|URL",
        parser=read_data,
        help="Data of the service: a file (default: in your data directory), or the URL of a "
        "PostgreSQL database.",
    ),
]

# What --from of `check-dns` and `show-dns`, and `ledger import`, read.
SAVED_RESULT = (
    "JSON that a command of dkimctl printed, or a response of the service; `-` is standard input."
)

KeyFormatOption = Annotated[
    KeyFormat | None,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help=f"{', '.join(KeyFormat)} (default: table)."
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", parser=read_output, help=OUTPUT_HELP),
]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Answer the question with yes, without asking.")
]


class TableOrJson(StrEnum):
    """The formats of answers without a format of their own."""

    TABLE = "table"
    JSON = "json"


TableOrJsonOption = Annotated[
    TableOrJson,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TableOrJson)}."),
]


def with_session(*shown: Collection[str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a command of a function whose first parameter is a Session.

    The command takes all options of `dkimctl.cli.options.common`; its help shows the groups of
    them that are named here. If the second parameter is an OutputOptions, it takes those too.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        _, *own = _parameters(command)
        results = []
        if own and own[0].annotation is OutputOptions:
            own, results = own[1:], result_options()

        @functools.wraps(command)
        def run(ctx: typer.Context, flags: dict[str, Any], **values: Any) -> int:
            with Session(flags, ctx.obj) as session:
                if not results:
                    return command(session, **values)
                options = {str(option.name): values.pop(str(option.name)) for option in results}
                return command(session, read_output_options(**options), **values)

        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters = [context, *map(_by_keyword, own)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in parameters}
        run.options = results  # type: ignore[attr-defined]
        run.shown_options = [*itertools.chain(*shown)]  # type: ignore[attr-defined]
        return run

    return decorate


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
