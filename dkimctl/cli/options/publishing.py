"""The options of `publish`, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from dkimctl.cli.options import read_duration
from dkimctl.errors import UsageError
from dkimctl.render.renderer import PublicationFormat

DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", "-n", help="Show what would be changed; 1 if there is something."),
]
ReplaceOption = Annotated[
    bool,
    typer.Option("--replace", help="Also replace TXT records that are not DKIM key records."),
]
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="Then check DNS until it has the records, for at most this long, such as 30m.",
    ),
]
CheckAccessOption = Annotated[
    bool,
    typer.Option("--check-access", help="Tell what can be read and written; nothing is changed."),
]
FormatOption = Annotated[
    PublicationFormat,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(PublicationFormat)}."),
]


class PublishOptions(NamedTuple):
    """What `publish` is asked for. `wait` is a duration as it was typed; None: check nothing."""

    fmt: PublicationFormat = PublicationFormat.TABLE
    output: Path | None = None
    dry_run: bool = False
    yes: bool = False
    replace: bool = False
    wait: str | None = None

    def require_sound(self, *, is_interactive: bool) -> None:
        """Raise UsageError for options that do not go together, or without a terminal to ask on."""
        if self.wait is not None:
            read_duration("--wait", self.wait)
        if self.dry_run and self.yes:
            raise UsageError("--dry-run cannot be combined with --yes", hint="remove one of them")
        if self.dry_run and self.wait is not None:
            raise UsageError("--wait has no effect with --dry-run", hint="remove one of them")
        if self.dry_run or self.yes:
            return
        if self.fmt is not PublicationFormat.TABLE:
            raise UsageError(
                f"--format {self.fmt} needs --dry-run or --yes",
                hint="to see the plan, add --dry-run; to make the changes, --yes",
            )
        if not is_interactive:
            raise UsageError(
                "there is no terminal to ask whether to make the changes",
                hint="add --yes to make them, or --dry-run to see them",
            )
