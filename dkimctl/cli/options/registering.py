"""The options of `register`."""

from __future__ import annotations

from typing import Annotated

import typer

SpecFileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A spec file (YAML); `-` is standard input.")
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
