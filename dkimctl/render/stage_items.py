"""The stages of keys for JSON and CSV."""

from __future__ import annotations

from datetime import datetime

from dkimctl.models.key_status import KeyDates, KeyStatus

STAGE_COLUMNS = (
    "sign_domain", "selector", "stage", "since", "next", "due", "urgency", "note", *KeyDates._fields
)  # fmt: skip


def stage_fields(status: KeyStatus) -> dict[str, str | None]:
    """The values of STAGE_COLUMNS by name; None: not known, or none."""
    values = (value or None for value in stage_row(status))
    return dict(zip(STAGE_COLUMNS, values, strict=True))


def stage_row(status: KeyStatus) -> tuple[str | None, ...]:
    """The cells of STAGE_COLUMNS; times are UTC, to the second."""
    return (
        status.sign_domain, status.selector, status.stage, written_time(status.since),
        status.action, written_time(status.due), status.urgency, status.note,
        *map(written_time, status.dates),
    )  # fmt: skip


def written_time(time: datetime | None) -> str | None:
    """ISO 8601, to the second."""
    return None if time is None else time.isoformat(timespec="seconds")
