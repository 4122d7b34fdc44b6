"""Client IDs; secrets and bearer tokens, which are never shown by accident."""

import re
from typing import NamedTuple, NoReturn

from dkimctl.errors import DkimctlError

REDACTED = "***"  # stands for what is secret
TOKEN_LIFETIME = 3600.0  # seconds (interface 3.1)
_LONG = 64  # characters; a JWT has hundreds, and all begin with the same few
# RFC 7617 section 2 excludes colons and control characters; surrogates have no UTF-8.
_CLIENT_ID = r"[^:\0-\x1f\x7f-\x9f\ud800-\udfff]+"  # compiled when it is first used


class Secret:
    """A secret or token whose text only `reveal` gives."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def masked(self) -> str:
        """Too little to use: the length, and the start of a long secret."""
        start = f"{self._text[:4]}..." if len(self._text) >= _LONG else ""
        return f"{start} ({len(self._text)} characters)".strip()

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    def __reduce__(self) -> NoReturn:
        self.__getstate__()


class Token(NamedTuple):
    """A bearer token (interface 3.1). Times are in seconds since the epoch."""

    access_token: Secret
    expires_at: float
    obtained_at: float | None = None  # None: the user provides it, and its age is not known

    def is_valid(self, now: float) -> bool:
        """Whether it has not expired at `now`, by a clock that may have been set meanwhile.

        A token from the future, or with an expiry more than an hour later, counts as expired.
        """
        if self.obtained_at is None:
            return now < self.expires_at
        return self.obtained_at <= now < self.expires_at <= self.obtained_at + TOKEN_LIFETIME


def require_client_id(text: str, error: type[DkimctlError]) -> None:
    """Raise `error` for a client ID that HTTP Basic cannot carry (RFC 7617 section 2)."""
    if not re.fullmatch(_CLIENT_ID, text):
        # Not quoted: people paste ID:SECRET here.
        raise error(
            "the client ID is empty, or contains a colon or a control character",
            hint="give the client ID alone, without the secret",
        )
