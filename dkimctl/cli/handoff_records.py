"""The records that go on a sheet for the owner of the DNS: those to add, or those to delete."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from dkimctl.cli.output.results import AttentionWarnings
from dkimctl.cli.selection import read_retirement_policy, registered_results, require_empty
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode
from dkimctl.ledger.selection import Selection
from dkimctl.models.keys import KeyStage, NextAction
from dkimctl.models.registration import DnsRecord, Registration, Result, key_of, named
from dkimctl.render.renderer import publishable, sound_record
from dkimctl.text.escaping import few

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
    from dkimctl.cli.output.rotation import retired_results
    from dkimctl.rotation.retirement import read_known_keys

    policy = read_retirement_policy(session, now, assume_successors=assume)
    known = read_known_keys(session.open_ledger(for_writing=False), selection)
    if not known.selected:
        require_empty(session, selection)
    results, status = retired_results(session, review_now(session, known, policy))
    records = ((one.registration, sound_record(one)) for one in results)
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
