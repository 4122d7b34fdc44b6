"""Show the access to DNS: for each zone, whether it can be read and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.cli.output.results import worst
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode
from dkimctl.models.registration import named
from dkimctl.publishing.targets import AccessReport, ZoneAccess
from dkimctl.render.renderer import PublicationFormat, TableLayout
from dkimctl.render.table import GREEN, RED, YELLOW, Row, below, table
from dkimctl.text.escaping import few, printable

_WORDS = {True: "yes", False: "no", None: "unknown"}
_STYLES = {True: GREEN, False: RED, None: YELLOW}


def write_access(
    reporter: Reporter, report: AccessReport, fmt: PublicationFormat, output: Path | None
) -> None:
    """Write the access to each zone, as JSON or a table. Raises OutputError."""
    if fmt is PublicationFormat.JSON:
        document = {"items": [_item(zone) for zone in report.zones], "count": len(report.zones)}
        write_chunks([f"{json.dumps(document, indent=2)}\n"], output)
        return
    layout = table_layout(reporter, output)
    rows = [_row(zone, layout) for zone in report.zones]
    write_chunks(table(["TARGET", "ZONE", "NAMES", "READ", "WRITE"], rows, layout), output)


def report_access(reporter: Reporter, report: AccessReport) -> None:
    """Say what a yes means, and warn about what needs attention."""
    if any(zone.access.writable for zone in report.zones):
        reporter.note(
            "dkimctl: WRITE was tried with an update that changes nothing; a policy that drops "
            "others shows only when publishing"
        )
    for hint, zones in _by_hint(report.zones).items():
        places = few([printable(zone.zone or zone.target) for zone in zones])
        reporter.warn(f"no access to {places}: {zones[0].access.reason}", hint=hint, code="access")
    if report.uncovered:
        names = few([named(one) for one in report.uncovered])
        reporter.warn(
            f"in no zone of a DNS target: {len(report.uncovered)} ({names})",
            hint="add the zone to `dns` in the config file",
            code="uncovered",
        )


def access_status(report: AccessReport) -> ExitCode:
    """The exit code: whether all can be read and written, as far as is known."""
    codes = [ExitCode.NO] if report.uncovered else []
    return worst([*codes, *map(_status, report.zones)])


def _by_hint(zones: Sequence[ZoneAccess]) -> dict[str, list[ZoneAccess]]:
    """The zones for which there is something to do, by what that is."""
    grouped: dict[str, list[ZoneAccess]] = {}
    for zone in zones:
        if zone.access.hint:
            grouped.setdefault(zone.access.hint, []).append(zone)
    return grouped


def _status(zone: ZoneAccess) -> ExitCode:
    if zone.error is not None:
        return zone.error.exit_code
    return ExitCode.NO if False in (zone.access.readable, zone.access.writable) else ExitCode.OK


def _item(zone: ZoneAccess) -> dict[str, object]:
    access = zone.access
    return {
        "target": zone.target,
        "zone": zone.zone,
        "names": zone.names,
        "readable": access.readable,
        "writable": access.writable,
        "reason": access.reason,
        "hint": access.hint,
    }


def _row(zone: ZoneAccess, layout: TableLayout) -> Row:
    answers = zone.access.readable, zone.access.writable
    cells = (zone.target, zone.zone, str(zone.names), *(_WORDS[answer] for answer in answers))
    styles = ("", "", "", *(_STYLES[answer] for answer in answers))
    return Row(cells, styles, below(zone.access.reason, layout))
