from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyring.backends import fail, null
from keyring.errors import InitError, KeyringError, KeyringLocked, NoKeyringError, PasswordSetError

from dkimctl.credentials import Account
from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

SECRET = Secret("hunter2")


class AnsweringKeyring:
    """Answers every question alike, or raises it."""

    def __init__(self, answer: str | BaseException | None) -> None:
        self.answer = answer

    def get_password(self, service: str, username: str) -> str | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def set_password(self, service: str, username: str, password: str) -> None:
        self.get_password(service, username)

    def delete_password(self, service: str, username: str) -> None:
        self.get_password(service, username)


class WindowsKeyring(AnsweringKeyring):
    """Holds no more than Windows does, and complains as it does."""

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password.encode("utf-16-le")) > 2560:
            raise OSError(1783, "CredWrite", "The stub received bad data")


class WaitingKeyring(AnsweringKeyring):
    """Waits to be unlocked."""

    def __init__(self) -> None:
        super().__init__(None)
        self.unlocked = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.unlocked.wait()
        return None


@pytest.fixture
def waiting_keyring() -> Iterator[WaitingKeyring]:
    backend = WaitingKeyring()
    yield backend
    backend.unlocked.set()


def assert_names_the_ways_out(error: CredentialsError) -> None:
    for way in ("DKIMCTL_CLIENT_ID", "DKIMCTL_CLIENT_SECRET", "--credential-store file"):
        assert way in error.hint


def test_its_name_names_the_backend(keyring_backend: Any) -> None:
    assert KeyringStore(keyring_backend).name == "keyring (fake Keyring)"
    assert KeyringStore(null.Keyring()).name == "keyring (null Keyring)"


def test_the_entries_tell_people_whose_they_are(keyring_backend: Any, account: Account) -> None:
    KeyringStore(keyring_backend).set_secret(account, SECRET)
    [(service, username)] = keyring_backend.entries
    assert username == "client-1"
    assert all(part in service for part in ("dkimctl secret", "auth.example", "api.example"))


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (NoKeyringError("hunter2"), "this machine has no keyring"),
        (InitError("hunter2"), "the keyring cannot be opened"),
        (KeyringLocked("hunter2"), "the keyring is locked"),
        (PasswordSetError("hunter2"), "the keyring failed (PasswordSetError)"),
        (KeyringError("hunter2"), "the keyring failed (KeyringError)"),
        (ValueError("hunter2"), "the keyring failed (ValueError)"),
        (SystemExit("hunter2"), "the keyring failed (SystemExit)"),
    ],
)
def test_whatever_a_backend_raises_becomes_plain_words(
    account: Account, raised: BaseException, said: str
) -> None:
    store = KeyringStore(AnsweringKeyring(raised))
    for use in (
        lambda: store.get_secret(account),
        lambda: store.set_secret(account, SECRET),
        lambda: store.delete(account),
    ):
        with pytest.raises(CredentialsError) as caught:
            use()
        assert caught.value.message == said
        assert_names_the_ways_out(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_the_fail_backend_is_no_keyring(account: Account) -> None:
    with pytest.raises(CredentialsError, match="this machine has no keyring"):
        KeyringStore(fail.Keyring()).get_secret(account)


def test_the_null_backend_does_not_pass_for_a_keyring(account: Account) -> None:
    with pytest.raises(CredentialsError, match="did not keep the secret") as caught:
        KeyringStore(null.Keyring()).set_secret(account, SECRET)
    assert_names_the_ways_out(caught.value)


def test_a_token_too_long_for_windows_is_not_kept_and_fails_nothing(account: Account) -> None:
    store = KeyringStore(WindowsKeyring(None))
    assert store.set_token(account, Token(Secret("e" * 1500), time.time() + 60)) is False
    assert store.set_token(account, Token(Secret("e" * 500), time.time() + 60)) is True


def test_a_keyring_that_waits_is_not_waited_for(
    account: Account, waiting_keyring: WaitingKeyring
) -> None:
    store = KeyringStore(waiting_keyring, seconds=0.05)
    with pytest.raises(CredentialsError, match="did not answer within") as caught:
        store.get_secret(account)
    assert_names_the_ways_out(caught.value)


@given(st.text())
@example('{"access_token": "abc"}')
@example('{"access_token": 1, "expires_at": 1}')
@example('{"access_token": "", "expires_at": 1e99}')
@example('{"access_token": "abc", "expires_at": "soon"}')
@example('{"access_token": "abc", "expires_at": 1' + "0" * 400 + "}")
@example('{"access_token": "abc", "expires_at": []}')
@example("[" * 100_000)
def test_a_corrupt_token_is_none(text: str) -> None:
    account = Account("https://auth.example", "https://api.example", "client-1")
    assert KeyringStore(AnsweringKeyring(text)).get_token(account) is None


def test_a_corrupt_secret_is_refused_unquoted(account: Account) -> None:
    with pytest.raises(CredentialsError) as caught:
        KeyringStore(AnsweringKeyring("hunter2\x00")).get_secret(account)
    assert "hunter2" not in caught.value.message + caught.value.hint


SCRIPT = """
import sys
from pathlib import Path
from dkimctl.credentials import Account, open_store
from dkimctl.errors import CredentialsError
store = open_store("keyring", Path("unused"))
print("keyring" in sys.modules)
try:
    store.get_secret(Account("https://auth.example", "https://api.example", "client-1"))
except CredentialsError as error:
    print(error)
print(store.name)
"""


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("keyring.backends.fail.Keyring", "this machine has no keyring"),
        ("no.such.Backend", "the keyring failed (ModuleNotFoundError)"),
    ],
)
def test_the_system_keyring_is_looked_for_only_when_needed(backend: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHON_KEYRING_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    imported, error, name = done.stdout.splitlines()
    assert imported == "False"
    assert error == said
    assert name in ("keyring (fail Keyring)", "keyring (not available)")
    assert done.stderr == ""
