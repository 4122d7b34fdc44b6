"""The options of `init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli.init.dns import DnsMethod
from dkimctl.cli.options import read_output
from dkimctl.errors import UsageError

_DNS_PANEL = "How DNS is changed"


def _read_file_name(text: str) -> Path:
    """What --output names. Raises UsageError for stdout: several files are written."""
    file = read_output(text)
    if file is None:
        raise UsageError("in --output: init writes to files only", hint="write --output FILE")
    return file


DomainOption = Annotated[
    list[str] | None,
    typer.Option("--domain", metavar="DOMAIN", help="A signing domain; repeatable."),
]
SpecFileOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        parser=_read_file_name,
        help="Spec file to write.",
    ),
]
NoConfigOption = Annotated[bool, typer.Option("--no-config", help="Write only the spec file.")]
DnsOption = Annotated[
    DnsMethod | None,
    typer.Option(
        "--dns",
        metavar="METHOD",
        help=f"{', '.join(DnsMethod)} (default: hand).",
        rich_help_panel=_DNS_PANEL,
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="HOST[:PORT]",
        help="The primary server, for dynamic updates.",
        rich_help_panel=_DNS_PANEL,
    ),
]
KeyFileOption = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="File of the TSIG key that signs them.",
        rich_help_panel=_DNS_PANEL,
    ),
]
ClassOption = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="Class of the octoDNS provider.",
        rich_help_panel=_DNS_PANEL,
    ),
]
