"""The registrations whose records `publish` puts into DNS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.cli.output.results import worst
from dkimctl.cli.selection import (
    Checkable,
    read_selection,
    registered_results,
    retired_keys,
    warn_unmatched,
)
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
