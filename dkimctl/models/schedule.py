"""Whether a registration signs, when it was made, and when signing with it starts."""

from __future__ import annotations

from datetime import UTC, datetime

from dkimctl.models.registration import Registration


def signs(found: Registration) -> bool:
    """Whether mail is, or will be, signed with it: it is ours and enabled (interface 2.3)."""
    return not found.is_taken and found.enable is not False


def made_at(found: Registration) -> datetime | None:
    """When the key was made (UTC), as near as is known; None where no date can be read."""
    return instant(found.regist_date) or instant(found.start_date)


def starts_at(found: Registration) -> datetime | None:
    """When signing starts (UTC); None: not known.

    By default at registration (interface 2.3), and never before it, whatever date was asked for.
    """
    dates = [date for date in (instant(found.start_date), instant(found.regist_date)) if date]
    return max(dates, default=None)


def instant(text: str | None) -> datetime | None:
    """The UTC time of an ISO 8601 date-time with offset; None for other text."""
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
