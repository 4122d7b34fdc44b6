"""What the ledger remembers of a key besides the service's answers."""

from datetime import datetime
from typing import NamedTuple


class KeyHistory(NamedTuple):
    """When a key was enabled and seen in DNS (UTC), and which key it replaces. None: not known.

    `enabled_at`: since when it is known to be enabled, or was until `disabled_at`. `replaces`: the
    selector of the key it was made to replace. `published_at`: since when all authoritative servers
    have its record, at each look. `looked_at` and `verdict`: the last look with a verdict that is
    certain.
    """

    enabled_at: datetime | None = None
    disabled_at: datetime | None = None
    replaces: str | None = None
    published_at: datetime | None = None
    looked_at: datetime | None = None
    verdict: str | None = None
