"""What `rotate` shows: the specs of successors, or the records of retired keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import write_results
from dkimctl.cli.output.streams import Reporter
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.render.renderer import Format, render_all
from dkimctl.text.escaping import few

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.rotation.successors import Rotation


def report_rotation(
    reporter: Reporter, rotation: Rotation, *, start_date: str, older_than: str
) -> None:
    """Say how many domains are due, and warn about others."""
    if rotation.undated:
        reporter.warn(
            f"left out because the age of their keys is unknown: {', '.join(rotation.undated)}",
            hint="`dkimctl register --refresh FILE` gets their dates from the service",
            code="undated",
        )
    if rotation.unanswered:
        reporter.warn(
            f"a request for another selector was never answered: {few(rotation.unanswered)}",
            hint="to settle that first, register the file of that run again",
            code="unanswered",
        )
    if rotation.successors:
        reporter.note(
            f"dkimctl: due: {len(rotation.successors)}; signing with the new keys starts at "
            f"{start_date}: register these specs, publish the records before then, and check them "
            "with `dkimctl check-dns`"
        )
    else:
        reporter.note(
            "dkimctl: nothing is due: no domain's newest key is older than "
            f"{older_than} and already signing"
        )


def show_retired(session: Session, results: Sequence[Result], options: OutputOptions) -> None:
    """Write retired registrations, or the deletions of their records, and say what to do next."""
    if options.fmt is Format.NSUPDATE:
        _write_deletions(session.reporter, results, options)
    else:
        write_results(results, options)
    _report_retired(session, len(results))


def _write_deletions(reporter: Reporter, results: Sequence[Result], options: OutputOptions) -> None:
    from dkimctl.render.nsupdate import NsupdateDeletionRenderer

    renderer = NsupdateDeletionRenderer(options.zones)
    write_chunks(render_all(renderer, results), options.output)
    unusable = [
        named(result.registration) for result in results if result.outcome is Outcome.UNUSABLE
    ]
    if unusable:
        reporter.warn(
            f"left out because their records are unusable: {few(unusable)}",
            hint="look for their records in DNS; `dkimctl ledger forget` removes them from the "
            "ledger",
            code=Outcome.UNUSABLE,
        )


def _report_retired(session: Session, count: int) -> None:
    note = session.reporter.note
    if not count:
        note(
            "dkimctl: nothing is retired: a record is retired 14 days after a newer selector of "
            "its domain has started and was seen published by `dkimctl check-dns`"
        )
        return
    note(
        f"dkimctl: retired: {count}; the service does not tell when it stops using a selector: "
        "before you delete its record, check that mail sent now is signed with the new selector "
        "(s=)"
    )
    listing = session.command("rotate", "--retired --format")
    check = session.command("check-dns", "--from - --expect-absent")
    note(f"dkimctl: next, to delete: {listing} nsupdate | nsupdate -k KEYFILE")
    note(f"dkimctl: next, to check that they are gone: {listing} json | {check}")
    note(f"dkimctl: and then: {session.command('ledger forget', 'DOMAIN...')}")
