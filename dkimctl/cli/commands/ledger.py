"""`dkimctl ledger`: import registrations into the ledger, or forget them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli.completion import complete_selection
from dkimctl.cli.options import LEDGER, SAVED_RESULT, App, OutputOption, TableOrJson, examples
from dkimctl.cli.options.rotation import AssumeSuccessorsOption
from dkimctl.cli.output.ledger import (
    nothing_retired,
    report_forgotten,
    report_import,
    still_in_dns,
    write_forgotten,
)
from dkimctl.cli.output.streams import warn_unreadable
from dkimctl.cli.selection import read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode

app = App(
    help="Import registrations into the ledger, or forget retired ones.",
    epilog=examples(
        "dkimctl ledger import result.json",
        "dkimctl ledger forget example.com > forgotten.json",
    ),
)


@app.command(
    "import",
    epilog=examples(
        "dkimctl ledger import result.json",
        "ssh other dkimctl show-dns --format json | dkimctl ledger import -",
    ),
    shows=LEDGER,
)
def import_(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help=SAVED_RESULT),
    ],
) -> int:
    """Import the registrations of a saved result.

    They are not sent again then. Registrations that are already in the ledger do not change.
    Nothing is sent.
    """
    from dkimctl.registration.saved_results import import_results, read_saved_results, results_of

    session = open_session(ctx)
    saved = read_saved_results(file)
    with session.lock_account():
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        plan = import_results(ledger, results_of(saved.registrations, saved.retired))
    warn_unreadable(session.reporter, file, saved.faults)
    report_import(session.reporter, plan)
    is_complete = not (saved.faults or plan.conflicts or plan.skipped)
    return ExitCode.OK if is_complete else ExitCode.NO


@app.command(
    epilog=examples(
        "dkimctl ledger forget example.com > forgotten.json",
        "dkimctl ledger forget '*' --format table",
        "dkimctl ledger forget --force sold.example",
        "dkimctl ledger import forgotten.json",
    ),
    shows=LEDGER,
)
def forget(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SELECTION...",
            help="Domain names, globs such as '*.example.com', spec files.",
            autocompletion=complete_selection,
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Forget the whole selection, retired or not.")
    ] = False,
    still_published: Annotated[
        bool,
        typer.Option(
            "--still-published",
            help="Also forget those whose records may still be in DNS.",
        ),
    ] = False,
    assume_successors: AssumeSuccessorsOption = False,
    fmt: Annotated[
        TableOrJson | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"{', '.join(TableOrJson)} (default: table on a terminal, else json).",
        ),
    ] = None,
    output: OutputOption = None,
) -> int:
    """Remove retired registrations from the ledger.

    `rotate --retired` lists them. What is forgotten is printed; `ledger import` takes the JSON
    back. Nothing is forgotten until `check-dns` has seen that all of the records are gone from
    DNS. Nothing is sent.
    """
    from dkimctl.rotation.retirement import RetirementPolicy
    from dkimctl.rotation.review import read_known_keys

    session = open_session(ctx)
    selection = read_selection(session, words)
    now = datetime.now(UTC)
    with session.lock_account():
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        known = read_known_keys(ledger, selection)
        if not known.selected:
            require_empty(session, selection)
        grace = session.config.rotation.grace
        statuses = known.statuses(RetirementPolicy(now, now, assume_successors, grace=grace))
        forgotten = [status for status in statuses if force or status.is_over]
        if statuses and not forgotten:
            raise nothing_retired(session.reporter, statuses)
        if not still_published and (in_dns := known.not_seen_gone(forgotten)):
            raise still_in_dns(in_dns)
        write_forgotten(session.reporter, forgotten, fmt, output)  # first, so that nothing is lost
        # The selector of a retired key is never used again.
        ledger.retire(
            {one.registration: one.successors[0].selector for one in forgotten if one.is_over}
        )
        ledger.forget(one.registration for one in forgotten if not one.is_over)
    report_forgotten(session.reporter, len(forgotten), len(statuses) - len(forgotten))
    return warn_unmatched(session, selection)
