"""Whose credentials they are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dkimctl.errors import CredentialsError

# RFC 7617 section 2: no colon and no control character; surrogates have no UTF-8.
_CLIENT_ID = re.compile(r"[^:\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Account:
    """What credentials belong to: a client ID at an authorization host and a service host.

    Raises CredentialsError for a client ID that HTTP Basic cannot carry (RFC 7617 section 2).
    """

    auth_url: str
    base_url: str
    client_id: str

    def __post_init__(self) -> None:
        if not _CLIENT_ID.fullmatch(self.client_id):
            # Not quoted: people paste ID:SECRET here.
            raise CredentialsError(
                "the client ID is empty, or holds a colon or a control character",
                hint="give the client ID alone, as the service handed it out",
            )
