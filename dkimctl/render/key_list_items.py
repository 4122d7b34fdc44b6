"""Keys for JSON and CSV."""

from __future__ import annotations

from dkimctl.models.listed_key import ListedKey
from dkimctl.render.stage_items import written_time
from dkimctl.text.idn import readable

KEY_COLUMNS = (
    "sign_domain", "name", "selector", "key_len", "age_days", "created_at", "starts_at", "enable",
    "state", "looked_at", "stage", "since", "next", "due", "urgency", "note", "fqdn",
)  # fmt: skip


def key_fields(key: ListedKey) -> dict[str, str | int | None]:
    """The values of KEY_COLUMNS by name; None: not known, or none."""
    return dict(zip(KEY_COLUMNS, key_row(key), strict=True))


def key_row(key: ListedKey) -> tuple[str | int | None, ...]:
    """The values of KEY_COLUMNS; times are UTC, to the second."""
    status = key.status
    return (
        key.sign_domain, readable(key.sign_domain), key.selector, key.key_len,
        None if key.age is None else key.age.days, written_time(status.dates.created_at),
        written_time(key.starts_at), key.enable, key.state, written_time(key.looked_at),
        status.stage, written_time(status.since), status.action, written_time(status.due),
        status.urgency or None, status.note or None, key.fqdn,
    )  # fmt: skip
