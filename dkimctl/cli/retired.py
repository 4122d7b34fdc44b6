"""`dkimctl rotate --retired`: old records whose successors have long taken over."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.options import OutputOptions, default_format, read_zone
from dkimctl.cli.output.results import write_results
from dkimctl.cli.selection import few, named, pick_fates, read_selection, tell_unmatched
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError
from dkimctl.models.registration import Outcome, Result
from dkimctl.render.renderer import Format, render_all


class RetiredFormat(StrEnum):
    """What `rotate --retired --format` takes."""

    TABLE = "table"
    JSON = "json"
    NSUPDATE = "nsupdate"


def show_retired(
    session: Session,
    words: Sequence[str] | None,
    fmt: RetiredFormat | None,
    zones: Sequence[str],
    output: Path | None,
) -> int:
    """List what of the ledger is retired, as registrations or as the deletions of their records."""
    from dkimctl.rotation.retirement import as_result

    output_options = _output_options(fmt, zones, output)
    chosen = read_selection(session, words)
    fates = pick_fates(session, session.open_ledger(for_writing=False), chosen)
    results = [as_result(fate) for fate in fates if fate.is_retired]
    if output_options.fmt is Format.NSUPDATE:
        _write_deletions(session, results, output_options)
    else:
        write_results(results, output_options)
    _tell_retired(session, len(results))
    return tell_unmatched(session, chosen)


def _output_options(
    fmt: RetiredFormat | None, zones: Sequence[str], output: Path | None
) -> OutputOptions:
    if zones and fmt is not RetiredFormat.NSUPDATE:
        raise UsageError(
            "--zone means nothing with this format", hint="it is for --format nsupdate"
        )
    return OutputOptions(
        Format(fmt) if fmt else default_format(output, for_machines=Format.JSON),
        zones=[read_zone("--zone", name) for name in zones],
        output=output,
    )


def _write_deletions(
    session: Session, results: Sequence[Result], output_options: OutputOptions
) -> None:
    from dkimctl.render.nsupdate import NsupdateDeletionRenderer

    renderer = NsupdateDeletionRenderer(output_options.zones)
    write_chunks(render_all(renderer, results), output_options.output)
    unusable = [named(one.registration) for one in results if one.outcome is Outcome.UNUSABLE]
    if unusable:
        session.reporter.warn(
            f"not in the script, since their records are unusable: {few(unusable)}",
            hint="`dkimctl ledger forget` drops them; see what DNS has in their place, if anything",
            code=Outcome.UNUSABLE,
        )


def _tell_retired(session: Session, count: int) -> None:
    note = session.reporter.note
    if not count:
        note(
            "dkimctl: nothing is retired: a record is once a newer selector of its domain has "
            "started, and was seen published by `dkimctl check-dns`, over 14 days ago"
        )
        return
    note(
        f"dkimctl: retired: {count}; the service does not tell when an old selector is no longer "
        "used: before you delete its record, see in a mail that is sent now that its signature "
        "has the new one (s=)"
    )
    listing = session.command("rotate", "--retired --format")
    check = session.command("check-dns", "--from - --expect-absent")
    note(f"dkimctl: next, to delete: {listing} nsupdate | nsupdate -k KEYFILE")
    note(f"dkimctl: next, to see that they are gone: {listing} json | {check}")
    note(f"dkimctl: and then: {session.command('ledger forget', 'DOMAIN...')}")
