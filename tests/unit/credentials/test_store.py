"""What all credential stores have in common, and the file."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from dkimctl.credentials.store import Account, FileStore, Kind, parse_entry
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

SECRET = Secret("s3cr:et with spaces, \u00e9 and \\ \" '")
ACCOUNT = Account("https://auth.example", "https://api.example", "client-1")


def a_token(seconds: float = 3600) -> Token:
    now = time.time() - 1
    return Token(Secret("eyJ0.abc-_~+/="), now + seconds, now)


@pytest.mark.interface("3.1", "expiry")
@pytest.mark.parametrize(
    ("obtained", "lasts"),
    [(-1, -1), (60, 3600), (-3601, 3600), (-1, 3601), (-1, float("inf")), (float("nan"), 3600)],
    ids=["expired", "tomorrow", "an hour ago", "for too long", "for ever", "never"],
)
def test_a_token_that_expired_or_of_a_clock_that_was_set_is_none(store, account, obtained, lasts):
    obtained_at = time.time() + obtained
    store.set_token(account, Token(Secret("abc"), obtained_at + lasts, obtained_at))
    assert store.get_token(account) is None


def test_only_the_refused_token_is_discarded_and_delete_removes_both(store, account):
    refused, new = a_token(), a_token(1800)
    store.set_secret(account, SECRET)
    store.set_token(account, new)
    store.discard_token(account, refused)
    assert store.get_token(account) == new
    store.discard_token(account, new)
    assert store.get_token(account) is None
    assert store.get_secret(account) == SECRET
    store.set_token(account, new)
    for _ in range(2):
        store.delete(account)
        assert store.get_secret(account) is None
        assert store.get_token(account) is None


@pytest.mark.parametrize(
    "other",
    [ACCOUNT._replace(auth_url="https://auth.other"), ACCOUNT._replace(client_id="client-2"),
     ACCOUNT._replace(base_url="https://api.other"),
     Account("https://api.example", "https://auth.example", "client-1"),
     Account('https://auth.example", "https://api.example', "", "client-1")],
)  # fmt: skip
def test_an_account_gets_only_its_own_credentials(store, account, other):
    store.set_secret(account, SECRET)
    store.set_token(account, a_token())
    assert store.get_secret(other) is None
    assert store.get_token(other) is None
    store.delete(other)
    assert store.get_secret(account) == SECRET


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")


@pytest.fixture
def file(tmp_path, account):
    """A credential file with the secret `hunter2`."""
    path = tmp_path / "deep" / "state" / "credentials.json"
    FileStore(path).set_secret(account, Secret("hunter2"))
    return path


def refusal(file: Path, account: Account) -> CredentialsError:
    """The error of reading, which is one of writing as well."""
    with pytest.raises(CredentialsError):
        FileStore(file).set_secret(account, Secret("new"))
    with pytest.raises(CredentialsError) as caught:
        FileStore(file).get_secret(account)
    assert str(file.parent) in caught.value.message
    assert caught.value.hint
    assert "hunter2" not in caught.value.message
    return caught.value


@posix_only
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_what_others_can_access_is_refused(file, account, mode):
    file.chmod(mode)
    assert "chmod 600" in refusal(file, account).hint
    file.chmod(0o600)
    file.parent.chmod(0o750 | mode)
    if mode & 0o022:
        assert "chmod go-w" in refusal(file, account).hint
        assert b"hunter2" in file.read_bytes()


def _as_directory(file):
    file.unlink()
    file.mkdir(mode=0o700)


def _as_fifo(file):
    file.unlink()
    os.mkfifo(file, 0o600)


@posix_only
@pytest.mark.parametrize(
    ("change", "said"),
    [(lambda file: file.symlink_to(file.rename(file.with_name("elsewhere.json"))), "symbolic link"),
     (_as_fifo, "not a regular file"), (_as_directory, ""),
     (lambda file: os.truncate(file, 1 << 36), "file too large")],
)  # fmt: skip
def test_what_is_not_a_small_file_of_ones_own_is_neither_read_nor_replaced(
    file, account, change, said
):
    change(file)
    assert said in refusal(file, account).message


@pytest.mark.parametrize(
    "content", [b"", b"{hunter2", b"\xff\xfe", b"[]", b'{"a": 1}', b"[" * 100_000]
)
def test_a_corrupt_file_is_refused_and_not_quoted(file, account, content):
    file.write_bytes(content)
    error = refusal(file, account)
    assert "login" in error.hint
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_token_that_is_corrupt_or_of_unknown_age_is_none(file, account):
    store = FileStore(file)
    store.set_token(account, a_token())
    assert store.get_token(account) is not None
    entries = json.loads(file.read_text(encoding="utf-8"))
    damaged = {name: text.replace("eyJ0", "eyJ0\\t") for name, text in entries.items()}
    file.write_text(json.dumps(damaged), encoding="utf-8")
    assert store.get_token(account) is None
    # Earlier versions did not store when a token was obtained.
    store.set_token(account, Token(Secret("eyJ0"), time.time() + 60))
    assert store.get_token(account) is None


@pytest.mark.parametrize("bad", ["\n\n", "\x00", "\x1b", "\x7f", "\x85", "\u20ac", "\udcff"])
def test_text_that_no_header_can_carry_is_refused_and_not_quoted(bad):
    for kind in Kind:
        with pytest.raises(CredentialsError) as caught:
            parse_entry(kind, Secret(f"hunter2{bad}"), "DKIMCTL_SOMETHING")
        assert caught.value.message.startswith("DKIMCTL_SOMETHING ")
        assert "hunter2" not in repr(caught.value) + caught.value.hint
