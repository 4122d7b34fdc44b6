"""`dkimctl handoff`: a sheet for whoever owns the DNS."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from dkimctl.cli.handoff_records import needed_records, retired_records
from dkimctl.cli.options import LEDGER, App, OutputOption, examples
from dkimctl.cli.options.handoff import (
    ContactOption,
    LanguageOption,
    ProviderOption,
    RetiredOption,
    SheetFormatOption,
    TtlOption,
    ZoneOption,
    sheet_format,
)
from dkimctl.cli.options.rotation import AssumeSuccessorsOption
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.handoff import find_places_of, show_sheet
from dkimctl.cli.output.options import read_zone
from dkimctl.cli.output.results import worst
from dkimctl.cli.selection import SelectionArgument, read_selection, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import UsageError
from dkimctl.render.renderer import Language, SheetFormat

app = App()


@app.command(
    "handoff",
    epilog=examples(
        "dkimctl handoff example.com",
        "dkimctl handoff example.com --contact mail@example.net --output dns.html",
        "dkimctl handoff '*.example.com' --language ja --output dns.html",
        "dkimctl handoff example.com --zone example.com --provider route53 --output dns.md",
        "dkimctl handoff --retired --output delete.html",
    ),
    shows=LEDGER,
)
def handoff(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    fmt: SheetFormatOption = None,
    language: LanguageOption = None,
    contact: ContactOption = "",
    zone: ZoneOption = None,
    provider: ProviderOption = None,
    ttl: TtlOption = 3600,
    retired: RetiredOption = False,
    assume_successors: AssumeSuccessorsOption = False,
    output: OutputOption = None,
) -> int:
    """Write a sheet for whoever owns the DNS, with the records to add and how.

    DNS is asked for the zones and their name servers, which tell the provider. The records come
    from the ledger, without those of keys that have been replaced and may be removed; nothing is
    sent to the service.

    With --retired, these are the ones on the sheet: the old records to delete. Their successors
    are checked in DNS first.
    """
    from dkimctl.publication.handoff.sheet import SheetOptions, make_sheet

    session = open_session(ctx)
    fmt = sheet_format(fmt, output)
    if fmt is SheetFormat.JSON and language is not None:
        raise UsageError("--language has no effect with --format json", hint="leave it out")
    if assume_successors and not retired:
        raise UsageError("--assume-successors has no effect without --retired", hint="leave it out")
    if output is not None:
        require_writable(output)
    zones = [read_zone("--zone", name) for name in zone or ()]
    selected = read_selection(session, selection)
    now = datetime.now(UTC)
    if retired:
        records, status = retired_records(session, selected, now, assume=assume_successors)
    else:
        records, status = needed_records(session, selected, now)
    unmatched = warn_unmatched(session, selected)
    if not records and fmt is not SheetFormat.JSON:
        return worst([status, unmatched])
    places, answered = find_places_of(session, [record.fqdn for _, record in records], zones)
    options = SheetOptions(ttl, contact, provider, is_removal=retired)
    sheet = make_sheet(records, places, options, now.astimezone())
    show_sheet(session, sheet, fmt, language or Language.ENGLISH, output)
    return worst([status, unmatched, answered])
