"""The interface of all credential stores, and what they have in common."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TypeAlias

from dkimctl.credentials.account import Account, parse_secret, parse_token
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, Token

ALTERNATIVES = (
    "run `dkimctl login --credential-store file` for a file that only you can read, or set "
    "DKIMCTL_CLIENT_ID and DKIMCTL_CLIENT_SECRET in the environment"
)


class Kind(StrEnum):
    """The kinds of stored entries."""

    SECRET = "secret"  # noqa: S105 - a word, not a password
    TOKEN = "token"  # noqa: S105


Entries: TypeAlias = Mapping[Kind, Secret | None]


class CredentialStore(ABC):
    """Stores the secret and the token of each account, and returns them for that account only.

    Subclasses implement `_read`, `_write` and `_remove`, which raise CredentialsError if the store
    cannot be used.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Where the credentials are, in words for the user."""

    @property
    def is_plaintext_keyring(self) -> bool:
        """Whether it is a keyring that does not encrypt. Raises CredentialsError."""
        return False

    def get_secret(self, account: Account) -> Secret | None:
        """The secret of `account`, or None. Raises CredentialsError."""
        stored = self._read(account, Kind.SECRET)
        return None if stored is None else parse_secret(stored, "the stored secret")

    def has_secret(self, account: Account) -> bool:
        """Whether there is an entry for the secret, valid or not. Raises CredentialsError."""
        return self._read(account, Kind.SECRET) is not None

    def secret_source(self, account: Account) -> str | None:
        """Where the secret of `account` is stored, or None. Raises CredentialsError."""
        return None if self.get_secret(account) is None else self.name

    def set_secret(self, account: Account, secret: Secret) -> None:
        """Store `secret`. Raises CredentialsError, also if the store silently altered it."""
        self._write_verified(account, Kind.SECRET, secret)

    def entries(self, account: Account) -> Entries:
        """What is stored for `account`, valid or not, for `restore`. Raises CredentialsError."""
        return {kind: self._read(account, kind) for kind in Kind}

    def restore(self, account: Account, entries: Entries) -> bool:
        """Put `entries` back. False if the store cannot; then it may hold anything."""
        try:
            for kind, text in entries.items():
                if text is None:
                    self._remove(account, kind)
                else:
                    self._write(account, kind, text)
            return self.entries(account) == entries
        except CredentialsError:
            return False

    def delete(self, account: Account) -> None:
        """Delete the secret and the token, if there are any. Raises CredentialsError."""
        self._remove(account, Kind.SECRET)
        self._remove(account, Kind.TOKEN)

    def get_token(self, account: Account) -> Token | None:
        """The token of `account` unless it has expired, or None. Raises CredentialsError."""
        stored = self._read(account, Kind.TOKEN)
        token = None if stored is None else _decode_token(stored)
        return token if token is not None and token.is_valid(time.time()) else None

    def set_token(self, account: Account, token: Token) -> bool:
        """Store `token`. False if the store cannot; then it has no token, not even the previous.

        That only costs each command a new token.
        """
        try:
            self._write_verified(account, Kind.TOKEN, _encode_token(token))
        except CredentialsError:
            with suppress(CredentialsError):
                self._remove(account, Kind.TOKEN)
            return False
        return True

    def discard_token(self, account: Account, token: Token) -> None:
        """Delete `token`, which the service refused, unless another process has stored a new one.

        As far as the store can be used.
        """
        with suppress(CredentialsError):
            stored = self._read(account, Kind.TOKEN)
            if stored is not None and _decode_token(stored) == token:
                self._remove(account, Kind.TOKEN)

    def _write_verified(self, account: Account, kind: Kind, text: Secret) -> None:
        """Raises CredentialsError unless the store returns what was written."""
        self._write(account, kind, text)
        if self._read(account, kind) != text:  # some backends drop or truncate it
            raise CredentialsError(f"{self.name} did not store the {kind}", hint=ALTERNATIVES)

    @abstractmethod
    def _read(self, account: Account, kind: Kind) -> Secret | None: ...

    @abstractmethod
    def _write(self, account: Account, kind: Kind, text: Secret) -> None: ...

    @abstractmethod
    def _remove(self, account: Account, kind: Kind) -> None: ...


def entry_name(account: Account, kind: Kind) -> str:
    """A unique name for the entry of an account and kind: JSON keeps the parts apart."""
    return json.dumps([f"dkimctl {kind}", account.auth_url, account.base_url, account.client_id])


def _encode_token(token: Token) -> Secret:
    return Secret(json.dumps(token._asdict() | {"access_token": token.access_token.reveal()}))


def _decode_token(stored: Secret) -> Token | None:
    """None for an invalid entry, which may be damaged or of another version."""
    try:
        fields = json.loads(stored.reveal())
        access_token = parse_token(Secret(fields["access_token"]), "the stored token")
        expires_at, obtained_at = float(fields["expires_at"]), float(fields["obtained_at"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    except CredentialsError:
        return None
    return None if access_token is None else Token(access_token, expires_at, obtained_at)
