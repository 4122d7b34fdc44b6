"""Values of columns, which another program may have changed."""

from __future__ import annotations

from datetime import datetime

from dkimctl.models.registration import utc_time


def text_of(value: bytes | None) -> str | None:
    """Text; what is not valid UTF-8 is escaped.

    Select text as bytes: the driver fails on all rows if one that something else wrote is not
    valid text.
    """
    return None if value is None else value.decode("utf-8", "backslashreplace")


def time_of(value: bytes | None) -> datetime | None:
    """A time (UTC); None also for other text."""
    return None if value is None else utc_time(text_of(value))


def written(time: datetime | None) -> str | None:
    """A time as a column holds it: YYYY-MM-DDThh:mm:ss+00:00."""
    return None if time is None else time.isoformat(timespec="seconds")
