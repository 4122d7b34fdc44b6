"""The options of commands that write results; `read_output_options` gathers their values.

They are made directly, as those in `common.py` are.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from dkimctl.errors import UsageError
from dkimctl.render.renderer import Format, Provider

_PANEL = "Output"
MAX_TTL = 2**31 - 1  # RFC 2181, section 8
OUTPUT_HELP = "Write the result to this file, atomically; `-` is stdout."


def read_output(text: str) -> Path | None:
    """The file that --output names; None for stdout. Raises UsageError for an empty name."""
    if not text:
        raise UsageError("in --output: the file name is empty", hint="write --output FILE")
    return None if text == "-" else Path(text)


def result_options() -> list[TyperOption]:
    """The options; their names are the parameters of `read_output_options`."""
    ttl = typer.main.get_click_type(annotation=int, parameter_info=typer.Option(min=0, max=MAX_TTL))
    return [
        _option(
            ["fmt", "--format", "-f"],
            "FORMAT",
            f"{', '.join(Format)} (default: table on a terminal, else zone).",
            **_one_of(Format),
        ),
        _option(
            ["ttl", "--ttl"],
            "SECONDS",
            "TTL of the records.",
            type=ttl,
            default=3600,
            show_default=True,
        ),
        _option(["origin", "--origin"], "ZONE", "Write names relative to this zone (format zone)."),
        _option(
            ["zone", "--zone"],
            "ZONE",
            "Zone of your DNS; repeatable. A record goes into the longest zone that contains it.",
            multiple=True,
        ),
        _option(
            ["find_zones", "--find-zones"],
            None,
            "Look up the zones in DNS, by their SOA records.",
            type=None,
            is_flag=True,
            default=False,
        ),
        _option(
            ["provider", "--provider"],
            "NAME",
            f"Provider of the terraform resources: {', '.join(Provider)} (default: route53).",
            **_one_of(Provider),
        ),
        _option(
            ["output", "--output", "-o"],
            "FILE",
            OUTPUT_HELP,
            type=read_output,
        ),
        _option(
            ["output_dir", "--output-dir"],
            "DIR",
            "Write one file per zone to this directory.",
            type=Path,
        ),
        _option(
            ["wide", "--wide"],
            None,
            "Add the service's result code and message to the table.",
            type=None,
            is_flag=True,
            default=False,
        ),
    ]


def _one_of(values: type[StrEnum]) -> dict[str, Any]:
    kind = typer.main.get_click_type(annotation=values, parameter_info=typer.Option())
    return {"type": kind, "callback": lambda _context, _option, value: value and values(value)}


def _option(names: list[str], metavar: str | None, help_text: str, **more: Any) -> TyperOption:
    settings = {"type": str, **more}
    return TyperOption(
        param_decls=names, metavar=metavar, help=help_text, rich_help_panel=_PANEL, **settings
    )
