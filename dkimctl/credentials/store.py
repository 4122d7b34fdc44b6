"""What every credential store does, whatever it keeps its texts in."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from enum import StrEnum

from dkimctl.credentials.account import Account
from dkimctl.credentials.text import parse_secret, parse_token
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, Token

WAYS_OUT = (
    "set DKIMCTL_CLIENT_ID and DKIMCTL_CLIENT_SECRET in the environment, "
    "or use --credential-store file"
)


class Kind(StrEnum):
    """What a stored text is."""

    SECRET = "secret"  # noqa: S105 - a word, not a password
    TOKEN = "token"  # noqa: S105


class CredentialStore(ABC):
    """Keeps the secret and the token of each account, for that account alone.

    A store provides `_read`, `_write` and `_remove`, which raise CredentialsError where
    it cannot be used.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What people are told about where the credentials are."""

    def get_secret(self, account: Account) -> Secret | None:
        """The secret key of `account`, or None. Raises CredentialsError."""
        stored = self._read(account, Kind.SECRET)
        return None if stored is None else parse_secret(stored, "the stored secret")

    def has_secret(self, account: Account) -> bool:
        """Whether something is kept as the secret, be it usable or not. Raises CredentialsError."""
        return self._read(account, Kind.SECRET) is not None

    def secret_source(self, account: Account) -> str | None:
        """Where the secret of `account` is; None where there is none. Raises CredentialsError."""
        return None if self.get_secret(account) is None else self.name

    def set_secret(self, account: Account, secret: Secret) -> None:
        """Keep `secret`. Raises CredentialsError, also where the store silently changed it.

        The secret before is still there then, if there was one.
        """
        before = self._read(account, Kind.SECRET)
        try:
            self._keep(account, Kind.SECRET, secret)
        except CredentialsError:
            self._restore(account, Kind.SECRET, before)
            raise

    def delete(self, account: Account) -> None:
        """Forget the secret and the token; absent ones are no error. Raises CredentialsError."""
        self._remove(account, Kind.SECRET)
        self._remove(account, Kind.TOKEN)

    def get_token(self, account: Account) -> Token | None:
        """The token of `account` that has not expired, or None. Raises CredentialsError."""
        stored = self._read(account, Kind.TOKEN)
        token = None if stored is None else _decode_token(stored)
        return token if token is not None and token.expires_at > time.time() else None

    def set_token(self, account: Account, token: Token) -> bool:
        """Keep `token`; False where the store cannot, which costs no more than a new token.

        Nothing is left then of what was written, nor of the token before.
        """
        try:
            self._keep(account, Kind.TOKEN, _encode_token(token))
        except CredentialsError:
            self._restore(account, Kind.TOKEN, None)
            return False
        return True

    def _keep(self, account: Account, kind: Kind, text: Secret) -> None:
        """Raises CredentialsError unless the store gives back what it was given."""
        self._write(account, kind, text)
        if self._read(account, kind) != text:  # some swallow it, or cut it
            raise CredentialsError(f"{self.name} did not keep the {kind}", hint=WAYS_OUT)

    def _restore(self, account: Account, kind: Kind, before: Secret | None) -> None:
        """As far as the store can be used at all."""
        with suppress(CredentialsError):
            if before is None:
                self._remove(account, kind)
            else:
                self._write(account, kind, before)

    @abstractmethod
    def _read(self, account: Account, kind: Kind) -> Secret | None: ...

    @abstractmethod
    def _write(self, account: Account, kind: Kind, text: Secret) -> None: ...

    @abstractmethod
    def _remove(self, account: Account, kind: Kind) -> None: ...


def entry_name(account: Account, kind: Kind) -> str:
    """One text for each account and kind, and no other: JSON keeps the parts apart."""
    return json.dumps([f"dkimctl {kind}", account.auth_url, account.base_url, account.client_id])


def _encode_token(token: Token) -> Secret:
    fields = {"access_token": token.access_token.reveal(), "expires_at": token.expires_at}
    return Secret(json.dumps(fields))


def _decode_token(stored: Secret) -> Token | None:
    """None for what is no token: it may have been kept by another version, or be damaged."""
    try:
        fields = json.loads(stored.reveal())
        access_token = parse_token(Secret(fields["access_token"]), "the stored token")
        expires_at = float(fields["expires_at"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    except CredentialsError:
        return None
    return None if access_token is None else Token(access_token, expires_at)
