"""Registrations that earlier runs have begun, and that may or may not exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.models.registration import RegistrationKey, key_of

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger


class Begun(NamedTuple):
    """Keys that are not registered as far as the ledger knows.

    `successors`: by the key that each was made to replace. `unanswered`: those that may have been
    sent. `foreign`: those of them that replace no key, so that it is not known what was asked.
    """

    successors: Mapping[RegistrationKey, RegistrationKey]
    unanswered: Collection[RegistrationKey]
    foreign: Mapping[str, RegistrationKey]

    def is_unanswered(self, old: RegistrationKey) -> bool:
        """Whether a successor of this key may have been sent."""
        return self.successors.get(old) in self.unanswered


def read_begun(ledger: Ledger, registered: Collection[RegistrationKey]) -> Begun:
    """What the ledger has of registrations that were begun; no keys that are `registered`.

    Those have open requests, too, if a refresh got no answer.
    """
    unanswered = {intent.key for intent in ledger.intents()}.difference(registered)
    begun = ledger.begun_successors()
    # Of several for one key, the one that may be registered.
    order = sorted(begun, key=lambda key: key in unanswered)
    successors = {key_of(key.sign_domain, begun[key]): key for key in order}
    foreign = {key.sign_domain: key for key in unanswered if key not in begun}
    return Begun(successors, unanswered, foreign)
