"""What a ledger has, as tests look at it."""

from __future__ import annotations

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import KeyHistory, RegistrationKey


def histories_of(ledger: Ledger) -> dict[RegistrationKey, KeyHistory]:
    """The history of each of our registrations."""
    return {
        registration.key: history
        for domain in ledger.domains()
        for registration, history in domain.histories.items()
        if not registration.is_taken
    }
