"""How urgent it is that a key is published, by what the ledger knows of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from dkimctl.dns.verdicts import ACCEPTED, Urgency
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import Registration


def warning_time(lead: timedelta) -> timedelta:
    """How long before its start a key that is not published becomes urgent."""
    return lead / 2


def urgency_of_start(
    registration: Registration, history: KeyHistory, now: datetime, lead: timedelta
) -> Urgency:
    """The urgency of a key that signs or will, unless verifiers accepted it at the last look.

    A key without a date signs, as far as is known.
    """
    if history.published_at is not None or history.verdict in ACCEPTED:
        return Urgency.NONE
    left = (registration.starts_at or now) - now
    if left <= timedelta():
        return Urgency.SIGNING
    return Urgency.SOON if left <= warning_time(lead) else Urgency.NONE
