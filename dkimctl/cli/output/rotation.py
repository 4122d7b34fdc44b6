"""What `rotate` shows: the specs of successors, or the records of retired keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.results import worst_check, write_results
from dkimctl.cli.output.streams import AlikeWarnings, Reporter
from dkimctl.errors import ExitCode
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.render.renderer import Format, render_all
from dkimctl.text.escaping import few

if TYPE_CHECKING:
    from dkimctl.cli.session import Session
    from dkimctl.rotation.retirement import RetirementStatus, Review
    from dkimctl.rotation.successors import Rotation

_Statuses: TypeAlias = "Sequence[RetirementStatus]"


def report_rotation(
    reporter: Reporter,
    rotation: Rotation,
    *,
    start_date: str,
    older_than: str,
    output: Path | None,
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
            f"{start_date}: publish their records before then"
        )
        reporter.note(f"dkimctl: next: {_register_successors(output)}")
        reporter.note(
            "dkimctl: when the grace period after that start is over: `dkimctl rotate --retired` "
            "lists the old records to remove"
        )
    else:
        reporter.note(
            "dkimctl: nothing is due: no domain's newest key is older than "
            f"{older_than} and already signing"
        )


def _register_successors(output: Path | None) -> str:
    if output is not None:
        return next_steps.register_file(output)
    if not sys.stdout.isatty():
        return "`dkimctl register FILE`"
    rotate = next_steps.same_command(more=("--output", "successors.yaml"))
    return f"`{rotate} && dkimctl register successors.yaml`"


def show_retired(
    session: Session,
    review: Review,
    options: OutputOptions,
    selection: Sequence[str],
    *,
    assume_successors: bool,
) -> ExitCode:
    """Write retired registrations, or the deletions of their records, and say what to do next.

    Warns about those that are due and cannot be listed; returns the exit code.
    """
    retired, due, unknown = _sorted(review)
    if options.fmt is Format.NSUPDATE:
        _write_deletions(session.reporter, retired, options)
    else:
        write_results(retired, options, session.reporter, is_paged=True)
    status = _report_others(session, review, due, unknown)
    if retired:
        assumed = ("--assume-successors",) if assume_successors else ()
        _report_retired(session, len(retired), options.fmt, selection, assumed)
    elif not due:
        _report_none(session.reporter)
    return status


def retired_results(session: Session, review: Review) -> tuple[list[Result], ExitCode]:
    """The retired registrations, and the exit code for those that are due and cannot be listed.

    Warns about these.
    """
    retired, due, unknown = _sorted(review)
    status = _report_others(session, review, due, unknown)
    if not (retired or due):
        _report_none(session.reporter)
    return retired, status


def _sorted(review: Review) -> tuple[list[Result], _Statuses, _Statuses]:
    """What is retired, what is due, and what is unknown."""
    from dkimctl.rotation.retirement import Stage, as_result

    by_stage: dict[Stage, list[RetirementStatus]] = {stage: [] for stage in Stage}
    for status in review.statuses:
        by_stage[status.stage].append(status)
    results = [as_result(status) for status in by_stage[Stage.RETIRED]]
    return results, by_stage[Stage.DUE], by_stage[Stage.UNKNOWN]


def _report_others(
    session: Session, review: Review, due: _Statuses, unknown: _Statuses
) -> ExitCode:
    _warn_unknown(session.reporter, unknown)
    _warn_due(session, due)
    return worst_check(
        ExitCode.SERVICE if status.registration in review.unanswered else ExitCode.NO
        for status in due
    )


def _report_none(reporter: Reporter) -> None:
    reporter.note(
        "dkimctl: nothing is retired: a key is retired when its successor has been enabled and "
        "published for the grace period (14 days by default), and has started that long ago"
    )


def _warn_due(session: Session, due: Sequence[RetirementStatus]) -> None:
    if not due:
        return
    warnings = AlikeWarnings(session.reporter)
    for status in due:
        reason = session.reporter.complete(status.reason)
        text = f"{named(status.registration)} is due, but check first: {reason}"
        warnings.warn(text, kind="due, but check first", code="due")
    warnings.close()
    check = next_steps.check(
        next_steps.select_domains(status.registration.sign_domain for status in due)
    )
    session.reporter.warn(
        f"not listed until their successors are published: {len(due)}",
        hint=f"publish what is missing, then run {check}",
        code="due",
    )


def _warn_unknown(reporter: Reporter, unknown: Sequence[RetirementStatus]) -> None:
    if not unknown:
        return
    domains = list(dict.fromkeys(status.registration.sign_domain for status in unknown))
    reporter.warn(
        f"not listed: {len(domains)} ({few(domains)}); the ledger does not record which of their "
        "keys replaces which",
        hint="if the newer keys replace the older ones, add --assume-successors",
        code="unknown_successor",
    )


def _write_deletions(reporter: Reporter, results: Sequence[Result], options: OutputOptions) -> None:
    from dkimctl.render.nsupdate import NsupdateRenderer

    renderer = NsupdateRenderer(options.zones, ttl=None)
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


def _report_retired(
    session: Session, count: int, fmt: Format, selection: Sequence[str], options: Sequence[str]
) -> None:
    reporter = session.reporter
    list_them = next_steps.rotate_retired(selection, *options)
    reporter.note(
        f"dkimctl: retired: {count}; the service does not tell when it stops using a selector: "
        "before you delete its record, check that mail sent now is signed with the new selector "
        "(s=)"
    )
    if fmt is not Format.NSUPDATE:
        how = f"`{list_them} --format nsupdate --output remove.txt && "
        how += "nsupdate -k KEYFILE remove.txt`"
        if session.has_dns_targets and not options:
            how = "`dkimctl rotate run`"
        reporter.note(f"dkimctl: next, to delete: {how}")
    reporter.note(
        f"dkimctl: next, to check that they are gone: `{list_them} --format json --output "
        "retired.json && dkimctl check-dns --from retired.json --expect-absent`"
    )
    reporter.note(f"dkimctl: and then: {next_steps.forget(selection, *options)}")
