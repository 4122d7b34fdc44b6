"""`dkimctl show-dns`: the DNS records of what is registered."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from dkimctl.cli import options, selected
from dkimctl.cli.options import SAVED_RESULT, App, option, result_option
from dkimctl.cli.output import read_output_options
from dkimctl.cli.results import at_targets, show, with_zones
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer, worst
from dkimctl.formats.renderer import NOT_FOR_DNS, Format, Provider
from dkimctl.models import Outcome, Result, named
from dkimctl.text import few

app = App()


@app.command(
    "dkimctl show-dns",
    "dkimctl show-dns --output dkim.zone",
    "dkimctl show-dns '*.example.com' --format json",
    "dkimctl show-dns example.com --format value",
    "dkimctl show-dns --from records.json --format csv",
    "dkimctl show-dns --format nsupdate --output FILE && nsupdate -k KEYFILE FILE",
)
def show_dns(
    ctx: typer.Context,
    selection: selected.SelectionArgument = None,
    saved: Annotated[str | None, option("--from FILE",
        f"Read a file, not the ledger: {SAVED_RESULT}")] = None,
    fmt: Annotated[Format | None, result_option("--format -f FORMAT",
        f"{', '.join(Format)} (default: table, or zone in a pipe).")] = None,
    ttl: Annotated[int, result_option("--ttl SECONDS",
        "TTL of the records.", min=0, max=options.MAX_TTL)] = 3600,
    origin: Annotated[str | None, result_option("--origin ZONE",
        "Write names relative to this zone (format zone).")] = None,
    zone: Annotated[list[str] | None, result_option("--zone ZONE", "Zone of your DNS; repeatable. "
        "A record goes into the longest zone that contains it.")] = None,
    find_zones: Annotated[bool, result_option("--find-zones",
        "Look up the zones in DNS, by their SOA records.")] = False,
    provider: Annotated[Provider | None, result_option("--provider NAME",
        f"Provider of the terraform resources: {', '.join(Provider)} (default: route53).")] = None,
    output: options.ResultsOutputOption = None,
    output_dir: Annotated[Path | None, result_option("--output-dir DIR",
        "Write one file per zone to this directory.")] = None,
    wide: options.WideOption = False,
) -> int:  # fmt: skip
    """Show the DNS records of the registered keys.

    They come from the ledger; nothing is sent.
    """
    session = open_session(ctx)
    output_options = read_output_options(
        fmt=fmt, ttl=ttl, origin=origin, zone=zone, find_zones=find_zones, provider=provider,
        output=output, output_dir=output_dir, wide=wide,
    )  # fmt: skip
    picked = selected.read_selection(session, selection)
    unreadable = ExitCode.OK
    results: Iterable[Result]
    if saved is None:
        results = selected.registered_results(session, picked)
    else:  # without ledger, token or network
        results, unreadable = selected.saved_results(session, saved, picked)
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
        if not results and (unmatched := picked.unmatched()):
            hint = "leave out the selection to see everything in the file"
            raise NegativeAnswer(f"nothing in {saved} matches {few(unmatched)}", hint=hint)
    results = at_targets(results, output_options.fmt, session.config.pool_of)
    if output_options.has_zones:
        results = list(results)
        output_options = with_zones(output_options, results, session.reporter)
    shown = show(results, output_options, session.reporter)
    status = shown.status
    if saved is not None and not shown.failure:
        # The service was not asked: what failed or is unknown is so in the file, and a no.
        status = min(status, ExitCode.NO)
    return worst([status, unreadable, selected.warn_unmatched(session, picked)])
