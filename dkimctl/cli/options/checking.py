"""The options of `check-dns`, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.options import SAVED_RESULT, read_duration
from dkimctl.errors import UsageError
from dkimctl.render.renderer import CheckFormat

if TYPE_CHECKING:
    from dkimctl.dns.check import CheckPolicy
    from dkimctl.dns.queries import Source

_SERVERS_PANEL = "Servers"
# Unless an option says otherwise.
MAX_IN_FLIGHT = 64
WARN_WITHIN = "2d"

SavedOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help=f"Check the registrations in a file instead of those in the ledger: {SAVED_RESULT}",
    ),
]
ServerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="IP[:PORT]",
        help="Ask only this server; repeatable (default: every authoritative server).",
        rich_help_panel=_SERVERS_PANEL,
    ),
]
ResolverOption = Annotated[
    bool,
    typer.Option(
        "--resolver",
        help="Ask only the system's resolver, whose cache may be out of date.",
        rich_help_panel=_SERVERS_PANEL,
    ),
]
MaxInFlightOption = Annotated[
    int,
    typer.Option(
        "--max-in-flight",
        metavar="N",
        min=1,
        max=1000,
        help="Parallel queries to one server, 1 to 1000.",
        rich_help_panel=_SERVERS_PANEL,
    ),
]
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="Check again until all records are as expected, for at most this long, such as 30m.",
    ),
]
ExpectAbsentOption = Annotated[
    bool, typer.Option("--expect-absent", help="Expect the records to be gone from DNS.")
]
WarnWithinOption = Annotated[
    str,
    typer.Option(
        "--warn-within",
        metavar="TIME",
        help="Warn about unpublished records whose signing starts within this time.",
    ),
]
NotifyOption = Annotated[
    bool,
    typer.Option(
        "--notify",
        help="Tell what has become worse or better since the last run: see notify in the config "
        "file.",
    ),
]
TestNoticeOption = Annotated[
    bool,
    typer.Option("--test-notice", help="Only send a notice, as a test: see notify."),
]
FormatOption = Annotated[
    CheckFormat | None,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help=f"{', '.join(CheckFormat)} (default: table)."
    ),
]


def read_policy(wait: str | None, warn_within: str, *, expect_absent: bool) -> CheckPolicy:
    """What these options ask for. Raises UsageError."""
    from dkimctl.dns.check import CheckPolicy

    return CheckPolicy(
        0.0 if wait is None else read_duration("--wait", wait).total_seconds(),
        read_duration("--warn-within", warn_within, may_be_zero=True),
        expect_absent,
    )


def open_source(
    servers: Sequence[str] = (), resolver: bool = False, max_in_flight: int = MAX_IN_FLIGHT
) -> Source:
    """The servers that these options name. Raises UsageError; ServiceError without a resolver."""
    from dkimctl.dns.nameserver import system_nameservers
    from dkimctl.dns.queries import authoritative, given, recursive
    from dkimctl.text.addresses import parse_address

    if servers and resolver:
        raise UsageError("--server cannot be combined with --resolver", hint="remove one of them")
    if servers:
        return given([parse_address(text) for text in servers], max_in_flight)
    if resolver:
        return recursive(system_nameservers(), max_in_flight)
    return authoritative(system_nameservers(), max_in_flight)
