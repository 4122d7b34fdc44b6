"""The options of `handoff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkimctl.cli.options import MAX_TTL
from dkimctl.errors import UsageError
from dkimctl.render.renderer import Language, SheetFormat
from dkimctl.text.escaping import quoted

if TYPE_CHECKING:
    from dkimctl.publication.handoff.providers import Provider

_BY_SUFFIX = {
    "": SheetFormat.TEXT,
    ".htm": SheetFormat.HTML,
    ".html": SheetFormat.HTML,
    ".json": SheetFormat.JSON,
    ".md": SheetFormat.MARKDOWN,
    ".txt": SheetFormat.TEXT,
}
_MAX_CONTACT = 200  # characters


def read_provider(text: str) -> Provider:
    """The provider that --provider names. Raises UsageError."""
    from dkimctl.publication.handoff.providers import provider_with

    return provider_with(text)


def read_contact(text: str) -> str:
    """What --contact says, on one line. Raises UsageError if it is too long."""
    contact = " ".join(text.split())
    if len(contact) > _MAX_CONTACT:
        raise UsageError(
            f"in --contact: the text has {len(contact)} characters",
            hint=f"write at most {_MAX_CONTACT}, such as an email address",
        )
    return contact


SheetFormatOption = Annotated[
    SheetFormat | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{', '.join(SheetFormat)} (default: by the suffix of --output, else text).",
    ),
]
LanguageOption = Annotated[
    Language | None,
    typer.Option("--language", metavar="LANGUAGE", help=f"{', '.join(Language)} (default: en)."),
]
ZoneOption = Annotated[
    list[str] | None,
    typer.Option(
        "--zone", metavar="ZONE", help="Zone of the DNS; repeatable. Then DNS is not asked."
    ),
]
# A Provider; Typer takes no NamedTuple.
ProviderOption = Annotated[
    Any,
    typer.Option(
        "--provider",
        metavar="PROVIDER",
        parser=read_provider,
        help="DNS provider, such as cloudflare (default: told by the zone's name servers).",
    ),
]
ContactOption = Annotated[
    Any,
    typer.Option(
        "--contact", metavar="TEXT", parser=read_contact, help="Whom to tell when it is done."
    ),
]
TtlOption = Annotated[
    int,
    typer.Option("--ttl", metavar="SECONDS", min=0, max=MAX_TTL, help="TTL of the records."),
]
RetiredOption = Annotated[
    bool, typer.Option("--retired", help="Records to delete, of keys that have been replaced.")
]


def sheet_format(fmt: SheetFormat | None, output: Path | None) -> SheetFormat:
    """The format that is named, or that the suffix of the file stands for. Raises UsageError."""
    suffix = output.suffix if output else ""
    known = fmt or _BY_SUFFIX.get(suffix.lower())
    if known is None:
        raise UsageError(
            f"in --output: no format has the suffix {quoted(suffix)}",
            hint="write .html, .md, .txt or .json, or name the format with --format; for PDF, "
            "print the .html in a browser",
        )
    return known
