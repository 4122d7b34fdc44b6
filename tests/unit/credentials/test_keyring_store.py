"""Whatever a keyring backend does, there is a result in time or an error that explains it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyring.backends import null
from keyring.errors import (
    InitError,
    KeyringError,
    KeyringLocked,
    NoKeyringError,
    PasswordDeleteError,
    PasswordSetError,
)

from dkimctl.credentials import keyring_store
from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.store import Account
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token
from thread_limits import FewThreads

SECRET = Secret("hunter2")


class LockedException(Exception):
    """Named like the one of secretstorage, which is installed on Linux only."""


class SecretServiceNotAvailableException(Exception):
    """Named like the one of secretstorage."""


class AnsweringKeyring:
    """Returns `answer` from every call, or raises it."""

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


class ChangingKeyring:
    """Stores what `change` returns for a text."""

    def __init__(self, change: Callable[[str], str | None]) -> None:
        self.change = change
        self.entries: dict[tuple[str, str], str | None] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = self.change(password)

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


class StubbornKeyring(ChangingKeyring):
    """Deletes only with `deletes`, and raises `fault`, if any, in any case."""

    def __init__(self, fault: Exception | None, *, deletes: bool = False) -> None:
        super().__init__(lambda text: text)
        self.fault = fault
        self.deletes = deletes

    def delete_password(self, service: str, username: str) -> None:
        if self.deletes:
            super().delete_password(service, username)
        if self.fault is not None:
            raise self.fault


def as_windows(text: str) -> str:
    """The size limit of Windows, and its error."""
    if len(text.encode("utf-16-le")) > 2560:
        raise OSError(1783, "CredWrite", "The stub received bad data")
    return text


class WaitingKeyring(AnsweringKeyring):
    """Blocks until it is unlocked."""

    def __init__(self) -> None:
        super().__init__(None)
        self.unlocked = threading.Event()
        self.calls = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.calls += 1
        self.unlocked.wait()
        return "hunter2"


@pytest.fixture
def waiting_keyring():
    backend = WaitingKeyring()
    yield backend
    backend.unlocked.set()


def assert_names_the_alternatives(error: CredentialsError) -> None:
    for alternative in ("DKIMCTL_CLIENT_ID", "DKIMCTL_CLIENT_SECRET", "--credential-store file"):
        assert alternative in error.hint


class PlaintextKeyring(AnsweringKeyring):
    """Named like the one of keyrings.alt."""

    name = "file PlaintextKeyring"


class DerivedKeyring(PlaintextKeyring):
    """Someone's own variant of it."""


def chain_of(*backends: Any) -> Any:
    chain = AnsweringKeyring(None)
    chain.backends = list(backends)  # type: ignore[attr-defined]
    return chain


@pytest.mark.parametrize(
    "backend",
    [
        PlaintextKeyring(None),
        DerivedKeyring(None),
        chain_of(null.Keyring(), PlaintextKeyring(None)),
    ],
    ids=["itself", "derived", "in a chain"],
)
def test_a_keyring_that_does_not_encrypt_is_called_so(backend):
    store = KeyringStore(backend)
    assert store.is_plaintext_keyring
    assert store.name.startswith("plain-text keyring (")
    assert "file PlaintextKeyring" in store.name


def test_entries_are_recognizable_in_the_keyring_program(keyring_backend, account):
    KeyringStore(keyring_backend).set_secret(account, SECRET)
    [(service, username)] = keyring_backend.entries
    assert username == "client-1"
    assert all(part in service for part in ("dkimctl secret", "auth.example", "api.example"))


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (NoKeyringError("hunter2"), "this machine has no keyring"),
        (InitError("hunter2"), "the keyring cannot be opened"),
        (KeyringLocked("hunter2"), "the keyring is locked"),
        (LockedException("hunter2"), "the keyring is locked"),
        (SecretServiceNotAvailableException("hunter2"), "the keyring cannot be opened"),
        (PasswordSetError("hunter2"), "the keyring refused to store an entry"),
        (KeyringError("hunter2"), "the keyring failed (KeyringError)"),
        (ValueError("hunter2"), "the keyring failed (ValueError)"),
        (SystemExit("hunter2"), "the keyring failed (SystemExit)"),
    ],
)
def test_every_exception_of_a_backend_is_explained(account, raised, message):
    store = KeyringStore(AnsweringKeyring(raised))
    for use in (
        lambda: store.get_secret(account),
        lambda: store.set_secret(account, SECRET),
        lambda: store.delete(account),
    ):
        with pytest.raises(CredentialsError) as caught:
            use()
        assert caught.value.message == message
        assert_names_the_alternatives(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def a_token(length: int) -> Token:
    now = time.time()
    return Token(Secret("e" * length), now + 60, now)


@pytest.mark.parametrize("fault", [None, PasswordDeleteError("hunter2")], ids=["silent", "raising"])
def test_an_entry_that_is_not_deleted_is_an_error(account, fault):
    store = KeyringStore(StubbornKeyring(fault))
    store.set_secret(account, SECRET)
    with pytest.raises(CredentialsError, match="the keyring refused to delete an entry") as caught:
        store.delete(account)
    assert "unlock it" in caught.value.hint
    assert "hunter2" not in caught.value.hint
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "change",
    [as_windows, lambda text: text[:1000], lambda text: text if len(text) < 1000 else None],
    ids=["raises", "truncates", "drops"],
)
def test_a_token_too_long_for_the_keyring_is_not_stored(account, change):
    backend = ChangingKeyring(change)
    store = KeyringStore(backend)
    assert store.set_token(account, a_token(500)) is True
    assert store.set_token(account, a_token(1500)) is False
    assert list(filter(None, backend.entries.values())) == []
    assert store.get_token(account) is None


def refuse_new(text: str) -> str:
    if text == "new":
        raise PasswordSetError
    return text


@pytest.mark.parametrize(
    "change", [refuse_new, lambda text: text[:3], lambda text: text.replace("new", "")]
)
@pytest.mark.parametrize("old", ["old", None])
def test_what_was_there_before_a_refused_secret_can_be_restored(account, change, old):
    backend = ChangingKeyring(change)
    store = KeyringStore(backend)
    if old is not None:
        store.set_secret(account, Secret(old))
    before = store.entries(account)
    with pytest.raises(CredentialsError):
        store.set_secret(account, Secret("new" if change is refuse_new else "new one"))
    assert store.restore(account, before) is True
    assert list(backend.entries.values()) == ([] if old is None else [old])


def test_a_keyring_that_no_thread_can_ask_is_an_error(account, monkeypatch):
    monkeypatch.setattr(keyring_store, "start_daemon", FewThreads(0))
    store = KeyringStore(AnsweringKeyring(None))
    with pytest.raises(CredentialsError, match="the keyring cannot be asked") as caught:
        store.get_secret(account)
    assert "ulimit -u" in caught.value.hint
    assert store.name == "keyring (not available)"


def test_a_keyring_that_timed_out_is_not_called_again(account, waiting_keyring):
    store = KeyringStore(waiting_keyring, seconds=0.05)
    for _ in range(3):
        with pytest.raises(CredentialsError, match="did not answer within"):
            store.get_secret(account)
    assert store.set_token(account, a_token(1)) is False
    assert store.name == "keyring (not available)"
    assert waiting_keyring.calls == 1


def test_a_long_wait_is_announced_and_succeeds(account, waiting_keyring, monkeypatch):
    monkeypatch.setattr(keyring_store, "_PATIENCE", 0.05)
    notes = []

    def unlock(text: str) -> None:
        notes.append(text)
        waiting_keyring.unlocked.set()

    store = KeyringStore(waiting_keyring, seconds=30, notify=unlock)
    assert store.get_secret(account) == SECRET
    assert notes == ["waiting for the keyring, which may be asking you to unlock it"]


@given(st.text())
@example('{"access_token": "abc"}')
@example('{"access_token": 1, "expires_at": 1, "obtained_at": 1}')
@example('{"access_token": "", "expires_at": 1e99, "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": "soon", "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": 1' + "0" * 400 + ', "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": [], "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": Infinity, "obtained_at": null}')
@example("[" * 100_000)
def test_a_corrupt_token_is_none(text):
    account = Account("https://auth.example", "https://api.example", "client-1")
    assert KeyringStore(AnsweringKeyring(text)).get_token(account) is None


def test_a_corrupt_secret_is_refused_and_not_quoted(account):
    with pytest.raises(CredentialsError) as caught:
        KeyringStore(AnsweringKeyring("hunter2\x00")).get_secret(account)
    assert "hunter2" not in caught.value.message + caught.value.hint
