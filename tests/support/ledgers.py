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


def require_events_agree(ledger: Ledger) -> None:
    """Assert that the events tell of just the keys and the looks that the ledger has."""
    seen: dict[RegistrationKey, bool] = {}  # of the keys that are there: whether in DNS
    for event in ledger.events():
        match event.what:
            case "registered" | "imported":
                assert event.key not in seen, event
                seen[event.key] = False
            case "removed" | "forgotten":
                del seen[event.key]
            case "seen":
                assert seen[event.key] != (event.detail == "published"), event
                seen[event.key] = event.detail == "published"
    histories = histories_of(ledger)
    assert seen == {key: history.verdict == "published" for key, history in histories.items()}
