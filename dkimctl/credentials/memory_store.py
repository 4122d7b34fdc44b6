"""Credentials that live no longer than the process."""

from __future__ import annotations

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret


class MemoryStore(CredentialStore):
    """Keeps credentials in memory only."""

    def __init__(self) -> None:
        self._entries: dict[str, Secret] = {}

    @property
    def name(self) -> str:
        return "memory"

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._entries.get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret) -> None:
        self._entries[entry_name(account, kind)] = text

    def _remove(self, account: Account, kind: Kind) -> None:
        self._entries.pop(entry_name(account, kind), None)


class EnvironmentStore(MemoryStore):
    """Credentials from the environment, and the tokens obtained with them, in memory only.

    Where the environment holds a token alone, the secret to renew it with is asked of
    `stored`, no sooner than it is needed; a store that cannot be used has none.
    """

    def __init__(self, stored: CredentialStore) -> None:
        super().__init__()
        self._stored = stored

    @property
    def name(self) -> str:
        return "environment"

    def secret_source(self, account: Account) -> str | None:
        if super().get_secret(account) is not None:
            return self.name
        try:
            return self._stored.secret_source(account)
        except CredentialsError:
            return None

    def get_secret(self, account: Account) -> Secret | None:
        given = super().get_secret(account)
        if given is not None:
            return given
        try:
            return self._stored.get_secret(account)
        except CredentialsError:
            return None
