"""The records that go on a sheet for the owner of the DNS: those to add, or those to delete."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.results import AttentionWarnings, worst_check
from dkimctl.cli.output.streams import AlikeWarnings
from dkimctl.cli.selection import read_retirement_policy, registered_results, require_empty
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode
from dkimctl.ledger.selection import Selection
from dkimctl.models.keys import KeyStage, NextAction
from dkimctl.models.registration import DnsRecord, Registration, Result, key_of, named
from dkimctl.render.renderer import publishable, sound_record
from dkimctl.text.escaping import few

if TYPE_CHECKING:
    from dkimctl.rotation.retirement import Review

SheetRecords = list[tuple[Registration, DnsRecord]]


def needed_records(
    session: Session, selection: Selection, now: datetime
) -> tuple[SheetRecords, ExitCode]:
    """The selected records, without those that have been replaced and may be removed.

    Notes which these are, and warns of what is not usable; that is exit code 1. Raises
    NegativeAnswer if nothing is selected.
    """
    from dkimctl.rotation.life import read_stages

    results = list(registered_results(session, selection))
    ledger = session.open_ledger(for_writing=False)
    past = {
        key_of(status.sign_domain, status.selector)
        for status in read_stages(ledger, selection, session.config.rotation, now)
        if status.stage is KeyStage.RETIRED or status.action is NextAction.REMOVE
    }
    if replaced := [named(one.registration) for one in results if one.registration.key in past]:
        session.reporter.note(
            f"dkimctl: left out, since they have been replaced: {len(replaced)} ({few(replaced)}); "
            "`dkimctl handoff --retired` writes the sheet to delete them"
        )
    return _usable(session, [one for one in results if one.registration.key not in past])


def retired_records(
    session: Session, selection: Selection, now: datetime, *, assume: bool
) -> tuple[SheetRecords, ExitCode]:
    """The selected records that may be removed, after a look at their successors in DNS.

    Warns of those that are due, and whose successors are not there; see `rotate --retired`.
    `assume`: a newer key replaces an older one, where that is not recorded.
    """
    from dkimctl.cli.checking import review_now
    from dkimctl.rotation.retirement import read_known_keys

    policy = read_retirement_policy(session, now, assume_successors=assume)
    known = read_known_keys(session.open_ledger(for_writing=False), selection)
    if not known.selected:
        require_empty(session, selection)
    review = review_now(session, known, policy)
    status = report_not_retired(session, review)
    records = ((one.registration, sound_record(one)) for one in retired_results(review))
    return [(one, record) for one, record in records if record is not None], status


def _usable(session: Session, results: Iterable[Result]) -> tuple[SheetRecords, ExitCode]:
    warnings = AttentionWarnings(session.reporter)
    usable = []
    status = ExitCode.OK
    for result in results:
        record = publishable(result)
        if record is None:
            warnings.add(result)
            status = ExitCode.NO
        else:
            usable.append((result.registration, record))
    warnings.close()
    return usable, status


def retired_results(review: Review) -> list[Result]:
    """The retired registrations."""
    from dkimctl.rotation.retirement import Stage, as_result

    return [as_result(status) for status in review.statuses if status.stage is Stage.RETIRED]


def report_not_retired(session: Session, review: Review) -> ExitCode:
    """Warn about those that are due, and cannot be listed; returns the exit code for these."""
    from dkimctl.rotation.retirement import Stage

    statuses, reporter = review.statuses, session.reporter
    due = [status for status in statuses if status.stage is Stage.DUE]
    unknown = [status for status in statuses if status.stage is Stage.UNKNOWN]
    if unknown:
        domains = list(dict.fromkeys(status.registration.sign_domain for status in unknown))
        reporter.warn(
            f"not listed: {len(domains)} ({few(domains)}); the ledger does not record which of "
            "their keys replaces which",
            hint="if the newer keys replace the older ones, add --assume-successors",
            code="unknown_successor",
        )
    if due:
        warnings = AlikeWarnings(reporter)
        for status in due:
            reason = reporter.complete(status.reason)
            text = f"{named(status.registration)} is due, but check first: {reason}"
            warnings.warn(text, kind="due, but check first", code="due")
        warnings.close()
        domains = [status.registration.sign_domain for status in due]
        check = next_steps.check(next_steps.select_domains(domains))
        reporter.warn(
            f"not listed until their successors are published: {len(due)}",
            hint=f"publish what is missing, then run {check}",
            code="due",
        )
    elif not any(status.stage is Stage.RETIRED for status in statuses):
        reporter.note(
            "dkimctl: nothing is retired: a key is retired when its successor has been enabled and "
            "published for the grace period (14 days by default), and has started that long ago"
        )
    return worst_check(
        ExitCode.SERVICE if status.registration in review.unanswered else ExitCode.NO
        for status in due
    )
