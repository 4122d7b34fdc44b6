"""The registrations whose records `publish` puts into DNS, or removes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from dkimctl.cli.checkable import Checkable, retired_keys
from dkimctl.cli.output.results import worst
from dkimctl.cli.output.rotation import retired_results
from dkimctl.cli.selection import read_selection, registered_results, require_empty, warn_unmatched
from dkimctl.cli.session import Session
from dkimctl.errors import ExitCode
from dkimctl.models.registration import Registration, named
from dkimctl.text.escaping import few


class Selected(NamedTuple):
    """Registrations with a sound record, and the exit code for what cannot be selected."""

    registrations: Sequence[Registration]
    status: ExitCode


def select_to_publish(session: Session, words: Sequence[str]) -> Selected:
    """What is registered and selected, but for disabled keys and those past their grace period.

    Warns about records that are not sound. Raises like `registered_results`.
    """
    selection = read_selection(session, words)
    results = registered_results(session, selection)
    sound = Checkable(results, session.reporter, retired={}, left_out="not published")
    registrations = without_left_out(session, sound.registrations)
    return Selected(registrations, worst([sound.status, warn_unmatched(session, selection)]))


def without_left_out(session: Session, registrations: Iterable[Registration]) -> list[Registration]:
    """The registrations, but for disabled keys and those past their grace period, with a note."""
    retired = retired_keys(session)
    registrations = list(registrations)
    old = [one for one in registrations if one.key in retired]
    disabled = [one for one in registrations if not one.signs]
    for which, left_out in (("past their grace period", old), ("disabled", disabled)):
        if left_out:
            names = few([named(one) for one in left_out])
            session.reporter.note(f"dkimctl: left out, {which}: {len(left_out)} ({names})")
    return [one for one in registrations if one.signs and one.key not in retired]


def select_retired(session: Session, words: Sequence[str], *, assume_successors: bool) -> Selected:
    """What `rotate --retired` lists, after the same look at DNS, with the same warnings."""
    from dkimctl.cli.looks import review_now
    from dkimctl.cli.options.rotation import read_retirement_policy
    from dkimctl.rotation.review import read_known_keys

    now = datetime.now(UTC)
    grace = session.config.rotation.grace
    policy = read_retirement_policy(None, now, grace, assume_successors=assume_successors)
    selection = read_selection(session, words)
    known = read_known_keys(session.open_ledger(for_writing=False), selection)
    if not known.selected:
        require_empty(session, selection)
    review = review_now(session, known, policy)
    results, status = retired_results(session, review)
    sound = Checkable(results, session.reporter, retired={}, left_out="not removed")
    registrations = list(sound.registrations)
    status = worst([status, sound.status, warn_unmatched(session, selection)])
    return Selected(registrations, status)
