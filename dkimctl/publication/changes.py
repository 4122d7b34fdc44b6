"""Which records DNS has gained or lost since the ledger was written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dkimctl.errors import LedgerError
from dkimctl.models.registration import RegistrationKey, key_of
from dkimctl.publication.verdicts import Check, Verdict

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger


class PublicationChanges:
    """What checks change about the `known` publications.

    Checks without an answer, or with second-hand answers, change nothing.
    """

    def __init__(self, known: Container[RegistrationKey]) -> None:
        self._known = known
        self._changed: dict[RegistrationKey, bool] = {}  # whether it is published now

    @property
    def published(self) -> list[RegistrationKey]:
        return [key for key, is_published in self._changed.items() if is_published]

    @property
    def gone(self) -> list[RegistrationKey]:
        return [key for key, is_published in self._changed.items() if not is_published]

    def add(self, check: Check) -> None:
        """Take in a check; the last check of a record counts."""
        verdict = check.finding.verdict
        if verdict is Verdict.NO_ANSWER or not check.is_first_hand:
            return
        key = key_of(check.sign_domain, check.selector)
        is_published = verdict is Verdict.PUBLISHED
        if is_published is (key in self._known):
            self._changed.pop(key, None)
        else:
            self._changed[key] = is_published


@contextmanager
def recorded_changes(
    open_ledger: Callable[[bool], Ledger], on_failure: Callable[[LedgerError], None]
) -> Iterator[PublicationChanges]:
    """Changes that are written into the ledger at the end, even if an error ends the checks.

    `open_ledger` is told whether to open it for writing. If writing fails, `on_failure` gets the
    error.
    """
    with open_ledger(False) as ledger:
        changes = PublicationChanges(ledger.publications())
    try:
        yield changes
    finally:
        if changes.published or changes.gone:
            try:
                with open_ledger(True) as ledger:
                    ledger.note_publications(changes.published, changes.gone)
            except LedgerError as error:
                on_failure(error)
