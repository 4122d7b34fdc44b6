"""Keys whose life is over: what the ledger keeps of them."""

from datetime import datetime
from typing import NamedTuple

from dkimctl.models.registration import RegistrationKey, key_of


class ClosedKey(NamedTuple):
    """A key that was retired and removed (UTC times; None: not known). Its selector is used up.

    `started_at`: since when it signed. `replaced_by`: the selector of its successor.
    """

    sign_domain: str
    selector: str
    third_party: int
    created_at: datetime | None
    started_at: datetime | None
    replaced_by: str | None
    closed_at: datetime | None

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)
