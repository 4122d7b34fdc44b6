"""Where a run takes its credentials from: the environment, else the profile's store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from dkimctl.credentials.account import Account, parse_secret, parse_token
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, Token

StoreKind: TypeAlias = Literal["keyring", "file"]

_TOKEN_VARIABLE = "DKIMCTL_ACCESS_TOKEN"  # noqa: S105 - the variable's name
_SECRET_VARIABLE = "DKIMCTL_CLIENT_SECRET"  # noqa: S105


IN_ENVIRONMENT = "environment"  # the name of the store


class EnvironmentStore(CredentialStore):
    """Credentials from the environment, and the tokens obtained with them, in memory only.

    If the environment provides only a token, the secret to renew it is read from `stored`, when it
    is needed; a store that cannot be used counts as empty.
    """

    def __init__(self, stored: CredentialStore) -> None:
        self._stored = stored
        self._entries: dict[str, Secret] = {}
        self._given_tokens: dict[Account, Token] = {}

    @property
    def name(self) -> str:
        return IN_ENVIRONMENT

    def secret_source(self, account: Account) -> str | None:
        if super().get_secret(account) is not None:
            return self.name
        try:
            return self._stored.secret_source(account)
        except CredentialsError:
            return None

    def get_secret(self, account: Account) -> Secret | None:
        secret = super().get_secret(account)
        if secret is not None:
            return secret
        try:
            return self._stored.get_secret(account)
        except CredentialsError:
            return None

    def give_token(self, account: Account, token: Secret) -> None:
        """Use `token`, of unknown age, until a new one is obtained."""
        self._given_tokens[account] = Token(token, math.inf)

    def get_token(self, account: Account) -> Token | None:
        return super().get_token(account) or self._given_tokens.get(account)

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._entries.get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret) -> None:
        self._entries[entry_name(account, kind)] = text

    def _remove(self, account: Account, kind: Kind) -> None:
        self._entries.pop(entry_name(account, kind), None)


def open_store(
    kind: StoreKind,
    state_dir: Path,
    *,
    seconds: float = 3,
    notify: Callable[[str], None] = lambda text: None,
) -> CredentialStore:
    """The store of `kind`; a file store is in `state_dir`. Reads nothing yet.

    No call to a keyring takes longer than `seconds`; `notify` is told if one takes long.
    """
    match kind:
        case "keyring":
            from dkimctl.credentials.keyring_store import KeyringStore

            return KeyringStore(seconds=seconds, notify=notify)
        case "file":
            from dkimctl.credentials.file_store import FileStore

            return FileStore(state_dir / "credentials.json")
        case _:
            assert_never(kind)


def find_credentials(
    environ: Mapping[str, str], account: Account, stored: CredentialStore
) -> CredentialStore:
    """Where this run reads the secret and token of `account`, and stores new tokens.

    A token or secret in the environment takes precedence over `stored`; an empty variable counts
    as unset. A token from the environment has no known expiry (infinity). Raises CredentialsError
    for a value that no header can carry.
    """
    token = parse_token(Secret(environ.get(_TOKEN_VARIABLE, "")), _TOKEN_VARIABLE)
    secret = parse_secret(Secret(environ.get(_SECRET_VARIABLE, "")), _SECRET_VARIABLE)
    if token is None and secret is None:
        return stored
    environment = EnvironmentStore(stored)
    if secret is not None:
        environment.set_secret(account, secret)
    if token is not None:
        environment.give_token(account, token)
    return environment
