"""`dkimctl show-dns`: the DNS records of what is registered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from dkimctl.cli import options
from dkimctl.cli.options import LEDGER, SAVED_RESULT, App, option
from dkimctl.cli.output import read_output_options, resolve_zones
from dkimctl.cli.results import show
from dkimctl.cli.selected import (
    SelectionArgument,
    read_selection,
    registered_results,
    saved_results,
    warn_unmatched,
)
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer, worst
from dkimctl.formats.renderer import NOT_FOR_DNS, publishable
from dkimctl.models import Outcome, Result, named
from dkimctl.names import zone_finder
from dkimctl.text import few

app = App()


@app.command(
    "dkimctl show-dns",
    "dkimctl show-dns --format zone --output dkim.zone",
    "dkimctl show-dns '*.example.com' --format json",
    "dkimctl show-dns example.com --format value",
    "dkimctl show-dns --from records.json --format csv",
    "dkimctl show-dns --format nsupdate --output FILE && nsupdate -k KEYFILE FILE",
    shows=LEDGER,
)
def show_dns(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    saved: Annotated[
        str | None,
        option(
            "--from FILE",
            f"Read the registrations in a file instead of those in the ledger: {SAVED_RESULT}",
        ),
    ] = None,
    fmt: options.FormatOption = None,
    ttl: options.TtlOption = 3600,
    origin: options.OriginOption = None,
    zone: options.ZoneOption = None,
    find_zones: options.FindZonesOption = False,
    provider: options.ProviderOption = None,
    output: options.ResultsOutputOption = None,
    output_dir: options.OutputDirOption = None,
    wide: options.WideOption = False,
) -> int:
    """Show the DNS records of what is registered.

    They come from the ledger; nothing is sent.
    """
    session = open_session(ctx)
    output_options = read_output_options(
        fmt=fmt, ttl=ttl, origin=origin, zone=zone, find_zones=find_zones, provider=provider,
        output=output, output_dir=output_dir, wide=wide,
    )  # fmt: skip
    output_options.require_zones_fit()
    selected = read_selection(session, selection)
    unreadable = ExitCode.OK
    results: Iterable[Result]
    if saved is None:
        results = registered_results(session, selected)
    else:  # without ledger, token or network
        in_file, unreadable = saved_results(session, saved, selected)
        results = list(in_file)
        retired = [
            named(result.registration) for result in results if result.outcome is Outcome.RETIRED
        ]
        if retired and output_options.fmt not in NOT_FOR_DNS:  # DNS would get them back
            raise NegativeAnswer(
                f"{saved} has records of retired keys, which must not be published again: "
                f"{len(retired)} ({few(retired)})",
                hint="`dkimctl rotate --retired --format nsupdate` deletes them; to see them, add "
                "--format table",
            )
        if not results and (unmatched := selected.unmatched()):
            raise NegativeAnswer(
                f"nothing in {saved} matches {few(unmatched)}",
                hint="leave out the selection to see everything in the file",
            )
    if output_options.has_zones:
        results = list(results)
        names = [record.fqdn for record in filter(None, map(publishable, results))]
        output_options = resolve_zones(output_options, names, session.reporter.note)
        if output_options.finds_zones:
            from dkimctl.cli.checking import warn_of_wildcards  # DNS, which others do not need

            find = zone_finder(output_options.zones)
            zone_of = {name: find(name) or "" for name in names}
            add_first = warn_of_wildcards(session.reporter, zone_of)
            output_options = output_options._replace(add_first=add_first)
    shown = show(results, output_options, session.reporter)
    status = shown.status
    if saved is not None and not shown.failure:
        # The service was not asked: what failed or is unknown is so in the file, and a no.
        status = min(status, ExitCode.NO)
    return worst([status, unreadable, warn_unmatched(session, selected)])
