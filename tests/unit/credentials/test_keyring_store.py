"""Whatever a keyring backend does, there is a result in time or an error that explains it."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyring.errors import (
    InitError,
    KeyringError,
    KeyringLocked,
    NoKeyringError,
    PasswordDeleteError,
    PasswordSetError,
)

from dkimctl.credentials import keyring_store
from dkimctl.credentials.keyring_store import KeyringStore, ReferencedSecrets
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


@pytest.mark.parametrize(
    ("raised", "message"),
    [(NoKeyringError, "this machine has no keyring"),
     *((kind, "the keyring cannot be opened") for kind in
       (InitError, SecretServiceNotAvailableException)),
     *((kind, "the keyring is locked") for kind in (KeyringLocked, LockedException)),
     (PasswordSetError, "the keyring refused to store an entry"),
     *((kind, f"the keyring failed ({kind.__name__})") for kind in (KeyringError, SystemExit))],
)  # fmt: skip
def test_every_exception_of_a_backend_is_explained(account, raised, message):
    store = KeyringStore(AnsweringKeyring(raised("hunter2")))
    for use in (store.get_secret, store.delete, lambda account: store.set_secret(account, SECRET)):
        with pytest.raises(CredentialsError) as caught:
            use(account)
        assert caught.value.message == message
        assert "hunter2" not in caught.value.hint
        for way in ("DKIMCTL_CLIENT_ID", "DKIMCTL_CLIENT_SECRET", "--credential-store file"):
            assert way in caught.value.hint
        assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("fault", [None, PasswordDeleteError("hunter2")], ids=["silent", "raising"])
def test_an_entry_that_is_not_deleted_is_an_error(account, keyring_backend, monkeypatch, fault):
    def delete(service: str, username: str) -> None:
        if fault:
            raise fault

    monkeypatch.setattr(keyring_backend, "delete_password", delete)
    store = KeyringStore(keyring_backend)
    store.set_secret(account, SECRET)
    with pytest.raises(CredentialsError, match="the keyring refused to delete an entry") as caught:
        store.delete(account)
    assert "unlock it" in caught.value.hint
    assert "hunter2" not in caught.value.hint
    assert caught.value.__cause__ is caught.value.__context__ is None


def refuse_new(text: str) -> str:
    if text == "new one":
        raise PasswordSetError
    return text


@pytest.mark.parametrize(
    "change", [refuse_new, lambda text: text[:3], lambda text: text.replace("new", "")]
)
@pytest.mark.parametrize("old", [["old"], []])
def test_what_was_there_before_a_refused_secret_can_be_restored(
    account, keyring_backend, change, old
):
    keyring_backend.change = change
    store = KeyringStore(keyring_backend)
    for text in old:
        store.set_secret(account, Secret(text))
    before = store.entries(account)
    with pytest.raises(CredentialsError):
        store.set_secret(account, Secret("new one"))
    assert store.restore(account, before) is True
    assert list(keyring_backend.entries.values()) == old


@pytest.mark.parametrize("change", [lambda text: text[:1000], lambda _text: None])
def test_a_token_that_the_keyring_does_not_hold_leaves_none(account, keyring_backend, change):
    store, now = KeyringStore(keyring_backend), time.time()
    assert store.set_token(account, Token(Secret("e"), now + 60, now)) is True
    keyring_backend.change = change
    assert store.set_token(account, Token(Secret("e" * 1500), now + 60, now)) is False
    assert not any(keyring_backend.entries.values())


def test_an_entry_that_is_not_text_is_an_error(account):
    with pytest.raises(CredentialsError, match=r"the keyring failed \(TypeError\)"):
        KeyringStore(AnsweringKeyring(b"hunter2")).get_secret(account)


def test_a_keyring_that_no_thread_can_ask_is_an_error(account, monkeypatch):
    monkeypatch.setattr(keyring_store, "start_daemon", FewThreads(0))
    store = KeyringStore(AnsweringKeyring(None))
    with pytest.raises(CredentialsError, match="the keyring cannot be asked") as caught:
        store.get_secret(account)
    assert "ulimit -u" in caught.value.hint
    assert store.name == "keyring (not available)"


class HungKeyring(AnsweringKeyring):
    """Does not answer before it is `released`; counts the calls."""

    def __init__(self) -> None:
        super().__init__(None)
        self.calls = 0
        self.released = threading.Event()

    def get_password(self, service: str, username: str) -> None:
        self.calls += 1
        self.released.wait(60)


def test_a_keyring_that_timed_out_is_not_asked_again(account):
    backend = HungKeyring()
    store = KeyringStore(backend, seconds=0.05)
    secrets = ReferencedSecrets({}, store)
    for ask in (lambda: store.get_secret(account), lambda: secrets.read("keyring/a")):
        with pytest.raises(CredentialsError, match="the keyring did not answer"):
            ask()
    assert store.set_token(account, Token(SECRET, 2, 1)) is False
    assert store.name == "keyring (not available)"
    assert backend.calls == 1
    backend.released.set()


def test_a_long_wait_is_announced_once_and_succeeds(account, monkeypatch):
    monkeypatch.setattr(keyring_store, "_PATIENCE", 0.05)
    backend, notes = HungKeyring(), []

    def unlock(text: str) -> None:
        notes.append(text)
        backend.released.set()

    store = KeyringStore(backend, seconds=30, notify=unlock)
    assert store.get_secret(account) is None
    backend.released.clear()
    threading.Timer(0.2, backend.released.set).start()
    assert store.get_secret(account) is None
    assert notes == ["waiting for the keyring, which may be asking you to unlock it"]


class PlaintextKeyring(AnsweringKeyring):
    """Named like the one of keyrings.alt."""


class OwnKeyring(PlaintextKeyring):
    """A variant of it."""


def test_a_chain_with_a_keyring_that_does_not_encrypt_is_called_so():
    chain = AnsweringKeyring(None)
    chain.backends = [AnsweringKeyring(None), OwnKeyring(None)]
    store = KeyringStore(chain)
    assert store.is_plaintext_keyring
    assert store.name == "plain-text keyring (AnsweringKeyring, OwnKeyring)"
    chain.backends.pop()
    assert not store.is_plaintext_keyring


@given(st.text())
@example('{"access_token": "abc"}')
@example('{"access_token": 1, "expires_at": 1, "obtained_at": 1}')
@example('{"access_token": "", "expires_at": 1e99, "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": "soon", "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": 1' + "0" * 400 + ', "obtained_at": 1}')
@example('{"access_token": "abc", "expires_at": Infinity, "obtained_at": null}')
@example("[" * 100_000)
def test_a_corrupt_token_is_none(text):
    account = Account("https://auth.example", "https://api.example", "client-1")
    assert KeyringStore(AnsweringKeyring(text)).get_token(account) is None
