"""`dkimctl ledger`: what this machine knows of registrations, to take over and to drop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output.options import OutputOptions, default_format
from dkimctl.cli.output.results import worst, write_results
from dkimctl.cli.selection import few, named, pick_fates, read_selection, tell_unmatched
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode, NegativeAnswer
from dkimctl.models.registration import Outcome, Result
from dkimctl.render.renderer import Format

if TYPE_CHECKING:
    from dkimctl.registration.importing import ImportPlan
    from dkimctl.rotation.retirement import RetirementStatus

app = typer.Typer(
    add_completion=False,
    help="Take over registrations of another machine, and drop those that are retired.",
    epilog=examples(
        "dkimctl ledger import result.json",
        "dkimctl ledger forget example.com > forgotten.json",
    ),
)

_TOLD = 5  # registrations that are left, with the reason


class ListFormat(StrEnum):
    """What `ledger forget --format` takes."""

    TABLE = "table"
    JSON = "json"


@app.command(
    "import",
    epilog=examples(
        "dkimctl ledger import result.json",
        "ssh other dkimctl show-dns --format json | dkimctl ledger import -",
    ),
)
@with_session
def import_(
    session: Session,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="What --format json wrote, or a response of the service; `-` is standard input.",
        ),
    ],
) -> int:
    """Take over the registrations of a saved result, so that they are not sent again.

    What the ledger has already stays as it is. Nothing is sent.
    """
    from dkimctl.registration.importing import take_over
    from dkimctl.registration.saved_results import judged, read_saved

    saved = read_saved(file)
    session.lock_account()
    ledger = session.open_ledger(for_writing=True)
    ledger.check()
    taken = take_over(judged(saved.registrations), ledger.all())
    ledger.record(taken.new)
    for fault in saved.faults:
        session.reporter.warn(f"{file}: {fault}", code="unreadable")
    _tell_takeover(session, taken)
    is_whole = not (saved.faults or taken.conflicts or taken.left_out)
    return ExitCode.OK if is_whole else ExitCode.NO


def _tell_takeover(session: Session, taken: ImportPlan) -> None:
    _tell_left_out(session, taken.left_out)
    for conflict in taken.conflicts:
        text = f"{named(conflict.registration)}: {conflict.reason}"
        session.reporter.warn(text, code="conflict")
    counts = {
        "imported": len(taken.new),
        "already there": taken.there,
        "in conflict": len(taken.conflicts),
        "left out": len(taken.left_out),
    }
    said = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    session.reporter.note(f"dkimctl: {said or 'nothing to import'}")


def _tell_left_out(session: Session, results: Sequence[Result]) -> None:
    """One line for each kind of what tells of no registration of ours."""
    by_outcome: dict[Outcome, list[Result]] = {}
    for result in results:
        by_outcome.setdefault(result.outcome, []).append(result)
    for outcome, alike in by_outcome.items():
        texts = [f"{named(result.registration)}: {result.reason}" for result in alike]
        session.reporter.warn(f"left out, {outcome}: {len(alike)} ({few(texts)})", code=outcome)


@app.command(
    epilog=examples(
        "dkimctl ledger forget example.com > forgotten.json",
        "dkimctl ledger forget '*' --format table",
        "dkimctl ledger forget --force sold.example",
        "dkimctl ledger import forgotten.json",
    )
)
@with_session
def forget(
    session: Session,
    selection: Annotated[
        list[str],
        typer.Argument(
            metavar="SELECTION...", help="Domain names, globs such as '*.example.com', spec files."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Drop all that is selected, retired or not.")
    ] = False,
    fmt: Annotated[
        ListFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(ListFormat)}; by default table on a terminal, else json.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write what is dropped there, whole."),
    ] = None,
) -> int:
    """Drop registrations that are retired (`rotate --retired` lists them) from the ledger.

    What is dropped is printed; `ledger import` takes the JSON back. Nothing is sent.
    """
    chosen = read_selection(session, selection)
    session.lock_account()
    ledger = session.open_ledger(for_writing=True)
    ledger.check()
    found = pick_fates(session, ledger, chosen)
    dropped = [fate for fate in found if force or fate.is_retired]
    if not dropped:
        raise _nothing_retired(session, found)
    _write(dropped, fmt, output)  # first: what cannot be written is not lost
    ledger.forget(fate.registration for fate in dropped)
    _tell_forgotten(session, len(dropped), len(found) - len(dropped))
    return worst([tell_unmatched(session, chosen)])


def _write(
    dropped: Sequence[RetirementStatus], fmt: ListFormat | None, output: Path | None
) -> None:
    from dkimctl.rotation.retirement import as_result

    chosen = Format(fmt) if fmt else default_format(output, for_machines=Format.JSON)
    write_results(map(as_result, dropped), OutputOptions(chosen, output=output), must_arrive=True)


def _nothing_retired(session: Session, kept: Sequence[RetirementStatus]) -> NegativeAnswer:
    for fate in kept[:_TOLD]:
        text = f"{named(fate.registration)} is not retired: {fate.reason}"
        session.reporter.warn(text, code="not_retired")
    return NegativeAnswer(
        f"none of {len(kept)} selected registrations is retired; nothing was dropped",
        hint="`dkimctl rotate --retired` lists what is; --force drops the others as well, such as "
        "those of a domain that was sold",
    )


def _tell_forgotten(session: Session, dropped: int, kept: int) -> None:
    left = f", left {kept} not retired" if kept else ""
    session.reporter.note(f"dkimctl: dropped {dropped}{left}")
    session.reporter.note(
        "dkimctl: remove their entries from your spec files, too: `dkimctl register` asks the "
        "service for what the ledger does not have"
    )
