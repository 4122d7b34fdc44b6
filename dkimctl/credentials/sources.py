"""Where a run takes its credentials from: the environment, else the profile's store.

And the secrets that the config file names: of DNS providers, and the URL of a webhook.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.store import (
    Account,
    CredentialStore,
    FileStore,
    Kind,
    entry_name,
    parse_secret,
    parse_token,
)
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token
from dkimctl.settings.values import SecretReference

StoreKind: TypeAlias = Literal["keyring", "file"]

_TOKEN_VARIABLE = "DKIMCTL_ACCESS_TOKEN"  # noqa: S105 - the variable's name
_SECRET_VARIABLE = "DKIMCTL_CLIENT_SECRET"  # noqa: S105

IN_ENVIRONMENT = "environment"  # the name of the store
KEYRING_SERVICE = "dkimctl-dns"  # of the entries that the config file names


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
    if kind == "keyring":
        return KeyringStore(seconds=seconds, notify=notify)
    return FileStore(state_dir / "credentials.json")


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


class ReferencedSecrets:
    """Reads `env/NAME` from `environ`, and `keyring/NAME` from the `keyring`, when asked."""

    def __init__(self, environ: Mapping[str, str], keyring: KeyringStore) -> None:
        self._environ = environ
        self._keyring = keyring

    def read(self, reference: SecretReference) -> Secret:
        """The secret. Raises CredentialsError if it is missing or empty, or cannot be read."""
        if reference.store == "env":
            if text := self._environ.get(reference.name):
                return Secret(text)
            raise CredentialsError(
                f"the environment variable {reference.name} is not set, or empty",
                hint=f"set it: the config file names it, as {reference}",
            )
        alternative = f"or write env/NAME instead of {reference} in the config file"
        try:
            secret = self._keyring.read_entry(KEYRING_SERVICE, reference.name)
        except CredentialsError as error:
            message = f"cannot read {reference}: {error.message}"
            hint = f"check that the keyring is there and unlocked, {alternative}"
            raise CredentialsError(message, hint=hint) from None
        if secret is None or not secret.reveal():
            raise CredentialsError(
                f"the keyring has no entry {reference.name} of the service {KEYRING_SERVICE}",
                hint=f"run `keyring set {KEYRING_SERVICE} {reference.name}`, {alternative}",
            )
        return secret
