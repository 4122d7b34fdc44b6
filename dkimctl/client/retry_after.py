"""The header Retry-After (RFC 9110 section 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_LONGEST = 1e9  # seconds


def parse_retry_after(value: str, date: str, now: float) -> float | None:
    """For how many seconds the service asks to be left alone; None when it does not say.

    `value` is the header's: seconds, or an HTTP date. A date is compared with the answer's own
    header `date`, since the two clocks may differ, else with `now` (seconds since the epoch).
    """
    text = value.strip()
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        return min(float(text), _LONGEST)
    until = _instant(text)
    if until is None:
        return None
    said = _instant(date)
    return min(max(0.0, until - (now if said is None else said)), _LONGEST)


def _instant(text: str) -> float | None:
    """Seconds since the epoch of an HTTP date (RFC 9110 section 5.6.7)."""
    from email.utils import parsedate_to_datetime

    try:
        found: datetime = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # The obsolete forms name no zone, and mean UTC.
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
