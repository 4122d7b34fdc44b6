from __future__ import annotations

from collections.abc import Callable

import pytest
from keyring.backends import fail

from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.store import Account, EnvironmentStore, FileStore


class FakeKeyring:
    """A keyring backend that stores what `change` returns for a text."""

    name = "fake Keyring"

    def __init__(self, change: Callable[[str], str | None] = str) -> None:
        self.change = change
        self.entries: dict[tuple[str, str], str | None] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = self.change(password)

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


@pytest.fixture
def account():
    return Account("https://auth.example", "https://api.example", "client-1")


@pytest.fixture
def keyring_backend():
    return FakeKeyring()


@pytest.fixture(params=["environment", "file", "keyring"])
def store(request, tmp_path, keyring_backend, account):
    """Each kind of store in turn."""
    if request.param == "environment":
        return EnvironmentStore(account, None, None, KeyringStore(fail.Keyring()))
    if request.param == "file":
        return FileStore(tmp_path / "state" / "credentials.json")
    return KeyringStore(keyring_backend)
