"""What is known of a key: of its registration, its record in DNS, and its stage."""

from datetime import datetime, timedelta
from typing import NamedTuple

from dkimctl.models.key_status import KeyStage, KeyStatus

NOT_CHECKED = "unchecked"  # the state of a record that no look has found anything certain of


class ListedKey(NamedTuple):
    """A key. None: not known, or it has none.

    `starts_at`: when signing starts if the key is enabled (UTC). `state` is the verdict of the last
    look at DNS, which was at `looked_at` (UTC), or NOT_CHECKED.
    """

    status: KeyStatus
    fqdn: str | None
    key_len: int | None
    age: timedelta | None
    starts_at: datetime | None
    enable: bool | None
    state: str | None
    looked_at: datetime | None

    @property
    def sign_domain(self) -> str:
        return self.status.sign_domain

    @property
    def selector(self) -> str | None:
        return self.status.selector

    @property
    def is_removed(self) -> bool:
        return self.status.stage is KeyStage.REMOVED
