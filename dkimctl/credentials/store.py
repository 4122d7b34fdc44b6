"""Client secrets and access tokens of accounts: in the environment, in a file, or elsewhere."""

from __future__ import annotations

import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dkimctl import files
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

ALTERNATIVES = (
    "run `dkimctl login --credential-store file` for a file that only you can read, or set "
    "DKIMCTL_CLIENT_ID and DKIMCTL_CLIENT_SECRET in the environment"
)
IN_ENVIRONMENT = "environment"  # the name of the store
_MAX_SIZE = 16 * 1024 * 1024  # bytes of the file; a login has some 2,000


class Account(NamedTuple):
    """What credentials belong to: a client ID at an authorization host and a service host."""

    auth_url: str
    base_url: str
    client_id: str


class Kind(StrEnum):
    """The kinds of stored entries."""

    SECRET = "secret"  # noqa: S105 - a word, not a password
    TOKEN = "token"  # noqa: S105


# What an entry may consist of, and what is said of any other.
_ALLOWED = {
    # RFC 7617 section 2
    Kind.SECRET: (r"[ -~\u00a0-\u00ff]+", "a control character or one outside Latin-1"),
    # RFC 6750 section 2.1
    Kind.TOKEN: (r"[!-~]+", "a character that no access token has"),
}


class CredentialStore(ABC):
    """Stores the secret and the token of each account, and returns them for that account only."""

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
        return None if stored is None else parse_entry(Kind.SECRET, stored, "the stored secret")

    def secret_source(self, account: Account) -> str | None:
        """Where the secret of `account` is stored, or None. Raises CredentialsError."""
        return None if self.get_secret(account) is None else self.name

    def set_secret(self, account: Account, secret: Secret) -> None:
        """Store `secret`. Raises CredentialsError, also if the store silently altered it."""
        self._write_verified(account, Kind.SECRET, secret)

    def entries(self, account: Account) -> Mapping[Kind, Secret | None]:
        """What is stored for `account`, valid or not, for `restore`. Raises CredentialsError."""
        return {kind: self._read(account, kind) for kind in Kind}

    def restore(self, account: Account, entries: Mapping[Kind, Secret | None]) -> bool:
        """Put `entries` back. False if the store cannot; then it may hold anything."""
        try:
            for kind, text in entries.items():
                self._write(account, kind, text)
            return self.entries(account) == entries
        except CredentialsError:
            return False

    def delete(self, account: Account) -> None:
        """Delete the secret and the token, if there are any. Raises CredentialsError."""
        for kind in Kind:
            self._write(account, kind, None)

    def get_token(self, account: Account) -> Token | None:
        """The token of `account` unless it has expired, or None. Raises CredentialsError."""
        token = _decode_token(self._read(account, Kind.TOKEN))
        return token if token is not None and token.is_valid(time.time()) else None

    def set_token(self, account: Account, token: Token) -> bool:
        """Store `token`. False if it cannot: then it has none, and each command gets its own."""
        fields = token._asdict() | {"access_token": token.access_token.reveal()}
        try:
            self._write_verified(account, Kind.TOKEN, Secret(json.dumps(fields)))
        except CredentialsError:
            with suppress(CredentialsError):
                self._write(account, Kind.TOKEN, None)
            return False
        return True

    def discard_token(self, account: Account, token: Token) -> None:
        """Delete `token`, which was refused, unless another process has stored a new one."""
        with suppress(CredentialsError):
            if _decode_token(self._read(account, Kind.TOKEN)) == token:
                self._write(account, Kind.TOKEN, None)

    def _write_verified(self, account: Account, kind: Kind, text: Secret) -> None:
        """Raises CredentialsError unless the store returns what was written."""
        self._write(account, kind, text)
        if self._read(account, kind) != text:  # some backends drop or truncate it
            raise CredentialsError(f"{self.name} did not store the {kind}", hint=ALTERNATIVES)

    @abstractmethod
    def _read(self, account: Account, kind: Kind) -> Secret | None:
        """An entry, or None. Raises CredentialsError."""

    @abstractmethod
    def _write(self, account: Account, kind: Kind, text: Secret | None) -> None:
        """Store an entry, or remove it. Raises CredentialsError."""


class FileStore(CredentialStore):
    """Stores credentials in one JSON file, which no other user can read or replace."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"file {self._path}"

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._load().get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret | None) -> None:
        name = entry_name(account, kind)
        try:
            files.prepare_directory(self._path.parent)
            files.refuse(files.fault_of(files.lock_file_of(self._path)), CredentialsError)
            with files.locked(self._path):
                entries = self._load()
                files.delete_leftovers(self._path)
                if entries.get(name) != text:
                    files.write_private(self._path, _encode(entries | {name: text}))
        except OSError as error:
            raise self._unusable("cannot write", error) from None

    def _load(self) -> dict[str, Secret]:
        try:
            entries = _decode(
                files.read_safe(self._path, _MAX_SIZE, CredentialsError, private=True)
            )
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable("cannot read", error) from None
        if entries is None:
            raise CredentialsError(
                f"{self._path} is not a credential file of dkimctl",
                hint="delete it, then run `dkimctl login` again",
            )
        return entries

    def _unusable(self, action: str, error: OSError) -> CredentialsError:
        hint = f"check that it is a file and that you can write to {self._path.parent}"
        return CredentialsError(
            f"{action} {self._path}: {error.strerror or error}",
            hint=files.access_hint(self._path, hint),
        )


class EnvironmentStore(CredentialStore):
    """Credentials from the environment, and the tokens obtained with them, in memory only.

    If the environment provides only a token, the secret to renew it is read from `stored`, when it
    is needed; a store that cannot be used counts as empty.
    """

    def __init__(
        self, account: Account, secret: Secret | None, token: Secret | None, stored: CredentialStore
    ) -> None:
        self._stored = stored
        self._entries = {(account, Kind.SECRET): secret}
        # Its age is not known: it is used until a new one is obtained.
        self._given_tokens = {} if token is None else {account: Token(token, math.inf)}

    @property
    def name(self) -> str:
        return IN_ENVIRONMENT

    def secret_source(self, account: Account) -> str | None:
        if super().get_secret(account) is not None:
            return self.name
        with suppress(CredentialsError):
            return self._stored.secret_source(account)
        return None

    def get_secret(self, account: Account) -> Secret | None:
        secret = super().get_secret(account)
        if secret is None:
            with suppress(CredentialsError):
                return self._stored.get_secret(account)
        return secret

    def get_token(self, account: Account) -> Token | None:
        return super().get_token(account) or self._given_tokens.get(account)

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._entries.get((account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret | None) -> None:
        self._entries[account, kind] = text


def find_credentials(
    environ: Mapping[str, str], account: Account, stored: CredentialStore
) -> CredentialStore:
    """Where this run reads the secret and token of `account`, and stores new tokens.

    A token or secret in the environment takes precedence over `stored`; an empty variable counts
    as unset. Raises CredentialsError for a value that no header can carry.
    """
    variable = "DKIMCTL_ACCESS_TOKEN"
    token = parse_entry(Kind.TOKEN, Secret(environ.get(variable, "")), variable)
    variable = "DKIMCTL_CLIENT_SECRET"
    secret = parse_entry(Kind.SECRET, Secret(environ.get(variable, "")), variable)
    if token is None and secret is None:
        return stored
    return EnvironmentStore(account, secret, token, stored)


# In functions of their own, so that no frame of an error holds the text of the file.


def _encode(entries: Mapping[str, Secret | None]) -> str:
    texts = {name: text.reveal() for name, text in entries.items() if text is not None}
    return json.dumps(texts, indent=1)


def _decode(data: bytes) -> dict[str, Secret] | None:
    """None for anything else; json's error, which contains the text, is dropped here."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not all(isinstance(text, str) for text in entries.values()):
        return None
    return {name: Secret(text) for name, text in entries.items()}


def entry_name(account: Account, kind: Kind) -> str:
    """A unique name for the entry of an account and kind: JSON keeps the parts apart."""
    return json.dumps([f"dkimctl {kind}", account.auth_url, account.base_url, account.client_id])


def _decode_token(stored: Secret | None) -> Token | None:
    """None without an entry, and for one that is damaged or of another version."""
    try:
        fields = json.loads(stored.reveal() if stored else "")
        text = parse_entry(Kind.TOKEN, Secret(fields["access_token"]), "the stored token")
        times = float(fields["expires_at"]), float(fields["obtained_at"])
    except (CredentialsError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None
    return None if text is None else Token(text, *times)


def parse_entry(kind: Kind, text: Secret, source: str) -> Secret | None:
    """The secret or token in `text`, without one trailing newline, or None if there is none.

    `source` names its origin in errors. Raises CredentialsError, which never quotes the text, for
    a character that no header can carry.
    """
    allowed, other = _ALLOWED[kind]
    stripped = Secret(re.sub(r"\r?\n\Z", "", text.reveal()))
    if not stripped.reveal():
        return None
    if not re.fullmatch(allowed, stripped.reveal()):
        hint = "give it exactly as the service issued it"
        raise CredentialsError(f"{source} contains {other}", hint=hint)
    return stripped
