"""What `handoff` writes: the sheet, and warnings of what is not on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode
from dkimctl.models.registration import (
    named,
)
from dkimctl.render.formats import render_sheet
from dkimctl.render.records import outside_zones
from dkimctl.render.renderer import Language, SheetFormat
from dkimctl.text.escaping import few
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.publication.handoff.places import Place
    from dkimctl.publication.handoff.sheet import Sheet, SheetRecord

_MANY = 100  # names, whose lookups may take longer than a second


def find_places_of(
    session: Session, names: Sequence[str], zones: Sequence[str]
) -> tuple[Mapping[str, Place], ExitCode]:
    """The place of each name in the zones given, or as DNS has it; warns of what is not known.

    Raises UsageError for names outside the zones given.
    """
    from dkimctl.publication.handoff.places import Trouble, find_places, given_places

    if zones:
        places = given_places(names, zones)
        if outside := [name for name, place in places.items() if not place.zone]:
            raise outside_zones(outside, zones)
        return places, ExitCode.OK
    from dkimctl.dns.nameservers import system_nameservers

    if len(names) >= _MANY:
        session.reporter.note(f"dkimctl: looking up the zones of {len(names)} names in DNS")
    places = find_places(names, system_nameservers)
    troubles = {place.trouble for place in places.values()}
    _warn_of_places(session.reporter, places)
    if Trouble.NO_ANSWER in troubles:
        return places, ExitCode.SERVICE
    return places, ExitCode.NO if Trouble.NO_ZONE in troubles else ExitCode.OK


def _warn_of_places(reporter: Reporter, places: Mapping[str, Place]) -> None:
    """Warn once for each reason, with the names that it is about."""
    names_of: dict[tuple[str, str], list[str]] = {}
    for name, place in places.items():
        if place.trouble:
            what = "name servers" if place.zone else "zone"
            names_of.setdefault((what, place.reason), []).append(place.zone or name)
    for (what, reason), names in names_of.items():
        unique = list(dict.fromkeys(names))
        reporter.warn(
            f"the {what} of {few(unique)} could not be found: {reason}",
            hint="the sheet says so; to name the zone yourself, use --zone ZONE",
            code="place_unknown",
        )


def show_sheet(
    session: Session, sheet: Sheet, fmt: SheetFormat, language: Language, output: Path | None
) -> None:
    """Write the sheet to a file or stdout, and say what comes next. Raises OutputError."""
    reporter = session.reporter
    write_chunks(render_sheet(sheet, fmt, language), output, is_paged=fmt is SheetFormat.TEXT)
    records = sheet.records
    _warn_too_long(reporter, [] if sheet.is_removal else records)
    counts = {"records": len(records), "zones": len(sheet.zones)}
    what = f"{counted(len(records), 'record')} in {counted(len(sheet.zones), 'zone')}"
    reporter.summarize(f"wrote {output} ({what})" if output else what, counts)
    if records:
        selected = next_steps.select_domains(record.sign_domain for record in records)
        wait = next_steps.wait_for(selected)
        check = next_steps.check(selected)
        step = f"deleted: {check}" if sheet.is_removal else f"added: {wait}"
        reporter.note(f"when the records are {step}")


def _warn_too_long(reporter: Reporter, records: Iterable[SheetRecord]) -> None:
    too_long = [named(record) for record in records if record.is_too_long]
    if too_long:
        reporter.warn(
            f"longer than the DNS provider's panel takes: {len(too_long)} ({few(too_long)})",
            hint="ask the provider, use its API (`dkimctl publish`), or register a key of 1024 "
            "bits; the sheet says so, too",
            code="too_long",
        )
