"""The options of `rotate`, and what they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.options import read_duration
from dkimctl.cli.output.options import OutputOptions, default_format, read_zone
from dkimctl.errors import UsageError
from dkimctl.render.renderer import Format
from dkimctl.text.escaping import quoted

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementPolicy
    from dkimctl.rotation.successors import RotationPolicy

# Of the options that --retired does not take. That of --older-than is `max_age` in the config file.
DEFAULTS = {
    "--start-in": "3d",
    "--selector": "s%Y%m%d",
    "--key-len": "2048",
}
MAX_AGE = "24h"
_KEY_LENS = ("1024", "2048")  # interface 2.3


class RetiredFormat(StrEnum):
    """What `rotate --retired --format` takes."""

    TABLE = "table"
    JSON = "json"
    NSUPDATE = "nsupdate"


OlderThanOption = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="TIME",
        help="Replace keys older than this; 0d: all keys (default: `max_age` of `rotation` in the "
        "config file, or 180d).",
    ),
]
StartInOption = Annotated[
    str | None,
    typer.Option(
        "--start-in",
        metavar="TIME",
        help=f"Time until signing with the new keys starts (default: {DEFAULTS['--start-in']}).",
    ),
]
SelectorOption = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="TEMPLATE",
        help="Template of the new selectors; {domain} is a short hash of the domain (default: "
        f"{DEFAULTS['--selector']}).",
    ),
]
KeyLenOption = Annotated[
    str | None,
    typer.Option(
        "--key-len",
        metavar="BITS",
        autocompletion=lambda: _KEY_LENS,
        help=f"Length of the new keys: {' or '.join(_KEY_LENS)} (default: "
        f"{DEFAULTS['--key-len']}).",
    ),
]
RetiredOption = Annotated[
    bool,
    typer.Option("--retired", help="List the old records that may be removed from DNS instead."),
]
RetiredFormatOption = Annotated[
    RetiredFormat | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"With --retired: {', '.join(RetiredFormat)} (default: table on a terminal, else "
        "json).",
    ),
]
NoCheckOption = Annotated[
    bool,
    typer.Option(
        "--no-check",
        help="With --retired: rely on earlier checks of the new records, and ask no server.",
    ),
]
MaxAgeOption = Annotated[
    str | None,
    typer.Option(
        "--max-age-of-check",
        metavar="TIME",
        help=f"With --no-check: the longest age of those checks (default: {MAX_AGE}).",
    ),
]
AssumeSuccessorsOption = Annotated[
    bool,
    typer.Option(
        "--assume-successors",
        help="Assume that newer keys replace older ones, where that is not recorded.",
    ),
]
ZoneOption = Annotated[
    list[str] | None,
    typer.Option(
        "--zone", metavar="ZONE", help="With --format nsupdate: a zone of your DNS; repeatable."
    ),
]


def read_policy(options: Mapping[str, str], now: datetime) -> RotationPolicy:
    """What --older-than and the options of DEFAULTS ask for. Raises UsageError."""
    from dkimctl.rotation.successors import RotationPolicy, start_date
    from dkimctl.specs.selector_template import SelectorTemplate

    start_in = _read_time(options, "--start-in")
    if not start_in:
        raise UsageError(
            f"in --start-in: with {quoted(options['--start-in'])}, signing would start before the "
            "new records can be in DNS",
            hint=f"leave time to publish them, such as {DEFAULTS['--start-in']}",
        )
    if options["--key-len"] not in _KEY_LENS:
        raise UsageError(
            "in --key-len: invalid key length",
            hint=f"write {' or '.join(_KEY_LENS)}",
        )
    template = SelectorTemplate(options["--selector"], now.astimezone(), option="--selector")
    return RotationPolicy(
        _read_time(options, "--older-than"),
        start_date(now, start_in),
        int(options["--key-len"]),
        template.selector,
    )


def read_retired_output(
    fmt: RetiredFormat | None, zones: Sequence[str], output: Path | None
) -> OutputOptions:
    """How --retired writes its list. Raises UsageError."""
    if zones and fmt is not RetiredFormat.NSUPDATE:
        raise UsageError("--zone has no effect with this format", hint="it is for nsupdate")
    return OutputOptions(
        Format(fmt) if fmt else default_format(output, for_machines=Format.JSON),
        zones=[read_zone("--zone", name) for name in zones],
        output=output,
    )


def read_retirement_policy(
    max_age: str | None, now: datetime, grace: timedelta, *, assume_successors: bool
) -> RetirementPolicy:
    """When a key is retired; `grace` is that of the config file. Raises UsageError."""
    from dkimctl.rotation.retirement import RetirementPolicy

    age = read_duration("--max-age-of-check", max_age or MAX_AGE)
    return RetirementPolicy(now, now - age, assume_successors, grace=grace)


def no_effect(option: str, how: str) -> UsageError:
    """The error for an option that is for the other mode; `how` is "with" or "without"."""
    return UsageError(
        f"{option} has no effect {how} --retired",
        hint="--retired lists old records; without it, rotate prints the specs of new keys",
    )


def _read_time(options: Mapping[str, str], name: str) -> timedelta:
    return read_duration(name, options[name], may_be_zero=True)
