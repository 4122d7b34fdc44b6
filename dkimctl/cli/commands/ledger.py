"""`dkimctl ledger`: import registrations into the ledger, or forget them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.completion import complete_selection
from dkimctl.cli.options import (
    LEDGER,
    SAVED_RESULT,
    App,
    AssumeSuccessorsOption,
    OutputOption,
    TableOrJson,
    examples,
)
from dkimctl.cli.output import OutputOptions, default_format
from dkimctl.cli.report import AlikeWarnings, Reporter, warn_unreadable
from dkimctl.cli.results import write_results
from dkimctl.cli.selected import read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.formats.renderer import Format
from dkimctl.models import Outcome, named
from dkimctl.registration.saved_results import import_results, read_saved_results, results_of
from dkimctl.rotation.retirement import RetirementPolicy, as_result, read_known_keys
from dkimctl.text import few, without_names

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import RetirementStatus

app = App(
    help="Import registrations into the ledger, or forget retired ones.",
    epilog=examples(
        "dkimctl ledger import result.json", "dkimctl ledger forget example.com > forgotten.json"
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
    ctx: typer.Context, file: Annotated[str, typer.Argument(metavar="FILE", help=SAVED_RESULT)]
) -> int:
    """Import the registrations of a saved result.

    They are not sent again then. Registrations that are already in the ledger do not change.
    Nothing is sent.
    """
    session = open_session(ctx)
    saved = read_saved_results(file)
    with session.lock_account():
        ledger = session.open_ledger(for_writing=True)
        ledger.check()
        plan = import_results(ledger, results_of(saved.registrations, saved.retired))
    reporter = session.reporter
    warn_unreadable(reporter, file, saved.faults)
    by_outcome: dict[Outcome, list[str]] = {}  # of what is not a registration of this account
    for result in plan.skipped:
        text = f"{named(result.registration)}: {result.reason}"
        by_outcome.setdefault(result.outcome, []).append(text)
    for outcome, texts in by_outcome.items():
        reporter.warn(f"left out, {outcome}: {len(texts)} ({few(texts)})", code=outcome)
    warnings = AlikeWarnings(reporter)
    for conflict in plan.conflicts:
        text = f"{named(conflict.registration)}: {conflict.reason}"
        kind = without_names(conflict.reason, *conflict.registration.key)
        warnings.warn(text, kind=kind, code="conflict")
    warnings.close()
    counts = {
        "imported": len(plan.new),
        "already there": plan.known,
        "in conflict": len(plan.conflicts),
        "left out": len(plan.skipped),
    }
    parts = [f"{word} {count}" for word, count in counts.items() if count]
    reporter.note(f"dkimctl: {', '.join(parts) or 'nothing to import'}")
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
            "--still-published", help="Also forget those whose records may still be in DNS."
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
            raise _nothing_retired(session.reporter, statuses)
        if not still_published and (in_dns := known.not_seen_gone(forgotten)):
            names = [f"{name}: {verdict}" for name, verdict in in_dns.items()]
            raise NegativeAnswer(
                f"may still be in DNS: {len(names)} ({few(names)}); nothing was forgotten",
                hint="delete the records and run `dkimctl check-dns DOMAIN`, or forget them with "
                "--still-published",
            )
        # First, so that nothing is lost: OutputError if it does not arrive.
        chosen = Format(fmt) if fmt else default_format(output, for_machines=Format.JSON)
        options = OutputOptions(chosen, output=output)
        write_results(map(as_result, forgotten), options, session.reporter, must_arrive=True)
        # The selector of a retired key is never used again.
        ledger.close_keys(
            {
                result.registration: result.successors[0].selector
                for result in forgotten
                if result.is_over
            }
        )
        ledger.forget(result.registration for result in forgotten if not result.is_over)
    kept = len(statuses) - len(forgotten)
    rest = f", kept {kept} (not retired)" if kept else ""
    done = f"forgot {len(forgotten)}{rest}" if statuses else "nothing to do"
    session.reporter.note(f"dkimctl: {done}")
    if statuses:
        session.reporter.note(
            "dkimctl: remove their entries from your spec files, too, or `dkimctl register` sends "
            "them again"
        )
    return warn_unmatched(session, selection)


def _nothing_retired(reporter: Reporter, statuses: Sequence[RetirementStatus]) -> NegativeAnswer:
    """Warn with reasons; returns the error to end with."""
    warnings = AlikeWarnings(reporter)
    for status in statuses:
        text = f"{named(status.registration)} is not retired: {reporter.complete(status.reason)}"
        warnings.warn(text, kind="not retired", code="not_retired")
    warnings.close()
    return NegativeAnswer(
        f"none of the {len(statuses)} selected registrations is retired; nothing was forgotten",
        hint="`dkimctl rotate --retired` lists the retired ones; --force forgets the others as "
        "well, such as those of a domain that was sold",
    )
