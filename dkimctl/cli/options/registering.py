"""The arguments and options of `register`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dkimctl.errors import UsageError

SpecFilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...", help="Spec files: YAML, or CSV (*.csv); `-` is standard input (YAML)."
    ),
]
DomainOption = Annotated[
    list[str] | None,
    typer.Option(
        "--domain",
        metavar="DOMAIN",
        help="Also register this signing domain, with the profile's defaults; repeatable.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be done, and send nothing.")
]
RefreshOption = Annotated[
    bool, typer.Option("--refresh", help="Also send entries that are already in the ledger.")
]
AssignSelectorOption = Annotated[
    str | None,
    typer.Option(
        "--assign-selector",
        metavar="TEMPLATE",
        help="Selector for entries without one, such as s%Y%m; {domain} is a short hash "
        "of the domain.",
    ),
]
RetryUnknownOption = Annotated[
    bool,
    typer.Option(
        "--retry-unknown",
        help="Retry unanswered entries that have no selector; may create duplicates.",
    ),
]
PublishOption = Annotated[
    bool,
    typer.Option(
        "--publish",
        help="Then publish the records, and check DNS, without asking.",
    ),
]
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="With --publish: longest time to wait until DNS has the records (default: 2m).",
    ),
]


def require_input(files: Sequence[str], domains: Sequence[str]) -> None:
    """Raise UsageError if there is nothing to register."""
    if not files and not domains:
        raise UsageError(
            "missing argument 'FILE', or option '--domain'",
            hint="for example, `dkimctl register domains.yaml`; - is standard input",
        )
