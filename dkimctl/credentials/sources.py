"""Where a run takes its credentials from: the environment, else the profile's store.

And the secrets that the config file names: of DNS providers, and the URL of a webhook.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.store import Account, CredentialStore, Kind, parse_entry
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

_TOKEN_VARIABLE = "DKIMCTL_ACCESS_TOKEN"  # noqa: S105 - the variable's name
_SECRET_VARIABLE = "DKIMCTL_CLIENT_SECRET"  # noqa: S105

IN_ENVIRONMENT = "environment"  # the name of the store
KEYRING_SERVICE = "dkimctl-dns"  # of the entries that the config file names


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
    as unset. A token from the environment has no known expiry (infinity). Raises CredentialsError
    for a value that no header can carry.
    """
    given = {_TOKEN_VARIABLE: Kind.TOKEN, _SECRET_VARIABLE: Kind.SECRET}
    token, secret = (
        parse_entry(kind, Secret(environ.get(name, "")), name) for name, kind in given.items()
    )
    if token is None and secret is None:
        return stored
    return EnvironmentStore(account, secret, token, stored)


class ReferencedSecrets:
    """Reads `env/NAME` from `environ`, and `keyring/NAME` from the `keyring`, when asked."""

    def __init__(self, environ: Mapping[str, str], keyring: KeyringStore) -> None:
        self._environ = environ
        self._keyring = keyring

    def read(self, reference: str) -> Secret:
        """The secret. Raises CredentialsError if it is missing or empty, or cannot be read."""
        store, _, name = reference.partition("/")
        if store == "env":
            if text := self._environ.get(name):
                return Secret(text)
            raise CredentialsError(
                f"the environment variable {name} is not set, or empty",
                hint=f"set it: the config file names it, as {reference}",
            )
        alternative = f"or write env/NAME instead of {reference} in the config file"
        try:
            secret = self._keyring.read_entry(KEYRING_SERVICE, name)
        except CredentialsError as error:
            message = f"cannot read {reference}: {error.message}"
            hint = f"check that the keyring is there and unlocked, {alternative}"
            raise CredentialsError(message, hint=hint) from None
        if secret is None or not secret.reveal():
            raise CredentialsError(
                f"the keyring has no entry {name} of the service {KEYRING_SERVICE}",
                hint=f"run `keyring set {KEYRING_SERVICE} {name}`, {alternative}",
            )
        return secret
