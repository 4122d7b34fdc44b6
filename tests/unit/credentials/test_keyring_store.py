from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyring.backends import fail, null
from keyring.errors import (
    InitError,
    KeyringError,
    KeyringLocked,
    NoKeyringError,
    PasswordDeleteError,
    PasswordSetError,
)

from dkimctl.credentials.account import Account
from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, Token

SECRET = Secret("hunter2")


class LockedException(Exception):
    """As secretstorage has it, which is installed on Linux alone."""


class SecretServiceNotAvailableException(Exception):
    """As secretstorage has it."""


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


class ChangingKeyring:
    """Keeps what `change` makes of a text; None is not kept."""

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
    """Does not delete; then it raises `fault`, or says nothing. With `is_gone` it has deleted."""

    def __init__(self, fault: Exception | None, *, is_gone: bool = False) -> None:
        super().__init__(lambda text: text)
        self.fault = fault
        self.is_gone = is_gone

    def delete_password(self, service: str, username: str) -> None:
        if self.is_gone:
            super().delete_password(service, username)
        if self.fault is not None:
            raise self.fault


def as_windows(text: str) -> str:
    """Holds no more than Windows does, and complains as it does."""
    if len(text.encode("utf-16-le")) > 2560:
        raise OSError(1783, "CredWrite", "The stub received bad data")
    return text


class WaitingKeyring(AnsweringKeyring):
    """Waits to be unlocked."""

    def __init__(self) -> None:
        super().__init__(None)
        self.unlocked = threading.Event()
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        self.unlocked.wait()
        return "hunter2"


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
        (LockedException("hunter2"), "the keyring is locked"),
        (SecretServiceNotAvailableException("hunter2"), "the keyring cannot be opened"),
        (PasswordSetError("hunter2"), "the keyring refused what it was to keep"),
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


def a_token(length: int) -> Token:
    return Token(Secret("e" * length), time.time() + 60)


@pytest.mark.parametrize("fault", [None, PasswordDeleteError("hunter2")], ids=["mute", "raising"])
def test_an_entry_that_stays_is_told(account: Account, fault: Exception | None) -> None:
    store = KeyringStore(StubbornKeyring(fault))
    store.set_secret(account, SECRET)
    with pytest.raises(CredentialsError, match="the keyring refused to delete an entry") as caught:
        store.delete(account)
    assert "unlocked" in caught.value.hint
    assert "hunter2" not in caught.value.hint
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_entry_that_is_gone_all_the_same_is_no_error(account: Account) -> None:
    store = KeyringStore(StubbornKeyring(PasswordDeleteError("No such password!"), is_gone=True))
    store.set_secret(account, SECRET)
    store.delete(account)
    assert store.get_secret(account) is None


@pytest.mark.parametrize(
    "change",
    [as_windows, lambda text: text[:1000], lambda text: text if len(text) < 1000 else None],
    ids=["raises", "cuts", "swallows"],
)
def test_a_token_too_long_for_the_keyring_leaves_nothing_and_fails_nothing(
    account: Account, change: Callable[[str], str | None]
) -> None:
    backend = ChangingKeyring(change)
    store = KeyringStore(backend)
    assert store.set_token(account, a_token(500)) is True
    assert store.set_token(account, a_token(1500)) is False
    assert list(filter(None, backend.entries.values())) == []
    assert store.get_token(account) is None


def test_a_secret_that_was_cut_is_refused_and_nothing_is_left(account: Account) -> None:
    backend = ChangingKeyring(lambda text: text[:5])
    with pytest.raises(CredentialsError, match="did not keep the secret"):
        KeyringStore(backend).set_secret(account, SECRET)
    assert backend.entries == {}


def freezing(text: str) -> str:
    if text == "new":
        raise PasswordSetError
    return text


@pytest.mark.parametrize(
    "change", [freezing, lambda text: text[:3], lambda text: text.replace("new", "")]
)
def test_a_secret_that_is_refused_leaves_the_one_before(
    account: Account, change: Callable[[str], str | None]
) -> None:
    backend = ChangingKeyring(change)
    store = KeyringStore(backend)
    store.set_secret(account, Secret("old"))
    with pytest.raises(CredentialsError):
        store.set_secret(account, Secret("new" if change is freezing else "new one"))
    assert list(backend.entries.values()) == ["old"]


@pytest.mark.parametrize("kept", [b"bytes", 7, ["list"], object()])
def test_what_is_no_text_is_an_error_and_no_defect(kept: Any, account: Account) -> None:
    with pytest.raises(CredentialsError, match="the keyring failed"):
        KeyringStore(AnsweringKeyring(kept)).get_secret(account)


def test_a_chain_is_named_by_its_links() -> None:
    chain = AnsweringKeyring(None)
    chain.backends = [null.Keyring(), fail.Keyring()]
    assert KeyringStore(chain).name == "keyring (null Keyring, fail Keyring)"


def test_a_keyring_that_waits_is_not_waited_for(
    account: Account, waiting_keyring: WaitingKeyring
) -> None:
    store = KeyringStore(waiting_keyring, seconds=0.05)
    with pytest.raises(CredentialsError, match="did not answer within") as caught:
        store.get_secret(account)
    assert_names_the_ways_out(caught.value)
    assert "unlock" in caught.value.hint


def test_a_keyring_that_did_not_answer_is_not_asked_again(
    account: Account, waiting_keyring: WaitingKeyring
) -> None:
    store = KeyringStore(waiting_keyring, seconds=0.05)
    for _ in range(3):
        with pytest.raises(CredentialsError, match="did not answer within"):
            store.get_secret(account)
    assert store.set_token(account, a_token(1)) is False
    assert store.name == "keyring (not available)"
    assert waiting_keyring.asked == 1


def test_who_waits_for_long_is_told_so_once_and_gets_the_answer(
    account: Account, waiting_keyring: WaitingKeyring
) -> None:
    told = []

    def unlock(text: str) -> None:
        told.append(text)
        waiting_keyring.unlocked.set()

    store = KeyringStore(waiting_keyring, seconds=30, patience=0.05, notify=unlock)
    assert store.get_secret(account) == SECRET
    waiting_keyring.unlocked.clear()
    threading.Timer(0.2, waiting_keyring.unlocked.set).start()
    assert store.get_secret(account) == SECRET
    assert told == ["waiting for the keyring, which may be asking you to unlock it"]


def test_nobody_is_told_to_wait_where_the_limit_comes_first(
    account: Account, waiting_keyring: WaitingKeyring
) -> None:
    told = []
    store = KeyringStore(waiting_keyring, seconds=0.05, patience=0.05, notify=told.append)
    with pytest.raises(CredentialsError):
        store.get_secret(account)
    assert told == []


HANGING = """
import time
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        time.sleep(600)

    set_password = delete_password = get_password
"""


def test_a_call_that_hangs_does_not_delay_the_exit(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING, encoding="utf-8")
    environment = {"PYTHON_KEYRING_BACKEND": "hanging.Keyring", "PYTHONPATH": str(tmp_path)}
    begun = time.monotonic()
    _, error, name = ask_in_a_process(environment)
    assert time.monotonic() - begun < 5
    assert error == "the keyring did not answer within 3 s"
    assert name == "keyring (not available)"


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
from dkimctl.credentials.account import Account
from dkimctl.credentials.finding import open_store
from dkimctl.errors import CredentialsError
store = open_store("keyring", Path("unused"))
print("keyring" in sys.modules)
try:
    store.get_secret(Account("https://auth.example", "https://api.example", "client-1"))
except CredentialsError as error:
    print(error)
print(store.name)
"""


def ask_in_a_process(environment: dict[str, str]) -> list[str]:
    """Whether keyring was imported too soon, the error of asking for a secret, the store's name."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("keyring.backends.fail.Keyring", "this machine has no keyring"),
        ("no.such.Backend", "the keyring failed (ModuleNotFoundError)"),
    ],
)
def test_the_system_keyring_is_looked_for_only_when_needed(backend: str, said: str) -> None:
    imported, error, name = ask_in_a_process({"PYTHON_KEYRING_BACKEND": backend})
    assert imported == "False"
    assert error == said
    assert name in ("keyring (fail Keyring)", "keyring (not available)")
