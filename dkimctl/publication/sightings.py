"""What the ledger is to keep of a look at DNS: since when records are published."""

from __future__ import annotations

from collections.abc import Container

from dkimctl.models.registration import RegistrationKey, key_of
from dkimctl.publication.verdicts import Check, Verdict


class PublicationChanges:
    """What is seen otherwise than it was `known`.

    Where DNS does not tell, or only at second hand, all stays as it was.
    """

    def __init__(self, known: Container[RegistrationKey]) -> None:
        self._known = known
        self._changed: dict[RegistrationKey, bool] = {}  # whether it is published now

    @property
    def published(self) -> list[RegistrationKey]:
        return [key for key, is_there in self._changed.items() if is_there]

    @property
    def gone(self) -> list[RegistrationKey]:
        return [key for key, is_there in self._changed.items() if not is_there]

    def see(self, check: Check) -> None:
        """Take in a check; of two of the same record the later counts."""
        verdict = check.finding.verdict
        if verdict is Verdict.NO_ANSWER or not check.is_first_hand:
            return
        key = key_of(check.sign_domain, check.selector)
        is_there = verdict is Verdict.PUBLISHED
        if is_there is (key in self._known):
            self._changed.pop(key, None)
        else:
            self._changed[key] = is_there
