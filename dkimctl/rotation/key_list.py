"""What is known of each key, in one place: its registration, its record in DNS, its stage."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dkimctl.dkim import with_key_len
from dkimctl.models.history import KeyHistory
from dkimctl.models.keys import NEVER, NOT_CHECKED, KeyStage, KeyStatus, ListedKey
from dkimctl.models.registration import Registration, key_of
from dkimctl.rotation.stages import read_stages
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.ledger.selection import Selection

_WITHOUT_RECORD = (KeyStage.REMOVED, KeyStage.UNANSWERED, KeyStage.TAKEN)


def read_keys(
    ledger: Ledger, selection: Selection, settings: RotationSettings, now: datetime
) -> list[ListedKey]:
    """The selected keys of the ledger, by domain and start.

    Also those that were removed, and those whose requests got no answer.
    """
    statuses = read_stages(ledger, selection, settings, now)
    registered = {one.key: one for one in ledger.all()} if statuses else {}
    histories = ledger.histories() if statuses else {}
    keys = []
    for status in statuses:
        key = key_of(status.sign_domain, status.selector)
        history = histories.get(key, KeyHistory())
        keys.append(_listed(status, registered.get(key), history, now))
    return sorted(keys, key=_by_name)


def _listed(
    status: KeyStatus, registration: Registration | None, history: KeyHistory, now: datetime
) -> ListedKey:
    has_record = status.stage not in _WITHOUT_RECORD
    if registration is None:
        return ListedKey(status, None, None, None, status.dates.starts_at, None, None, None)
    record = registration.record
    created_at = registration.created_at if has_record else None
    return ListedKey(
        status,
        record.fqdn if record else None,
        with_key_len(registration).key_len,
        None if created_at is None else max(now - created_at, timedelta()),
        registration.starts_at,
        registration.enable is not False if has_record else None,
        (history.verdict or NOT_CHECKED) if has_record else None,
        history.looked_at if has_record else None,
    )


def _by_name(key: ListedKey) -> tuple[str, datetime, str]:
    begins = key.starts_at or key.status.dates.created_at or NEVER
    return key.sign_domain, begins, key.selector or ""
