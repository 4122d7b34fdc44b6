"""What all credential stores have in common."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.credentials.store import Account, FileStore, Kind, parse_entry
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

SECRET = Secret("s3cr:et with spaces, \u00e9 and \\ \" '")


def a_token(seconds: float = 3600) -> Token:
    now = time.time() - 1
    return Token(Secret("eyJ0.abc-_~+/="), now + seconds, now)


@pytest.mark.interface("3.1", "expiry")
def test_an_expired_token_is_none(store, account):
    store.set_token(account, a_token(seconds=-1))
    assert store.get_token(account) is None


@pytest.mark.parametrize(
    ("obtained", "lasts"),
    [(60, 3600), (-3601, 3600), (-1, 3601), (-1, float("inf")), (float("nan"), 3600)],
    ids=["tomorrow", "an hour ago", "for too long", "for ever", "never"],
)
def test_a_token_of_a_clock_that_was_set_is_none(store, account, obtained, lasts):
    obtained_at = time.time() + obtained
    store.set_token(account, Token(Secret("abc"), obtained_at + lasts, obtained_at))
    assert store.get_token(account) is None


def test_only_the_refused_token_is_discarded(store, account):
    refused, new = a_token(), a_token(1800)
    store.set_secret(account, SECRET)
    store.set_token(account, new)
    store.discard_token(account, refused)
    assert store.get_token(account) == new
    store.discard_token(account, new)
    assert store.get_token(account) is None
    assert store.get_secret(account) == SECRET


def test_delete_removes_both_and_can_be_repeated(store, account):
    store.set_secret(account, SECRET)
    store.set_token(account, a_token())
    for _ in range(2):
        store.delete(account)
        assert store.get_secret(account) is None
        assert store.get_token(account) is None


@pytest.mark.parametrize(
    "other",
    [
        Account("https://auth.other", "https://api.example", "client-1"),
        Account("https://auth.example", "https://api.other", "client-1"),
        Account("https://auth.example", "https://api.example", "client-2"),
        Account("https://api.example", "https://auth.example", "client-1"),
        Account('https://auth.example", "https://api.example', "", "client-1"),
    ],
)
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
    with pytest.raises(CredentialsError) as caught:
        FileStore(file).get_secret(account)
    assert str(file.parent) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_it_is_replaced_as_a_whole_without_leftovers(file, account):
    with file.open("rb") as before:
        FileStore(file).set_secret(account, Secret("new"))
        assert b"hunter2" in before.read()
    assert b"hunter2" not in file.read_bytes()
    assert {path.name for path in file.parent.iterdir()} <= {file.name, "credentials.lock"}


@posix_only
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_access_is_refused(file, account, mode):
    file.chmod(mode)
    assert "chmod 600" in refusal(file, account).hint


@posix_only
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_a_directory_that_others_can_write_to_is_refused(file, account, mode):
    file.parent.chmod(mode)
    assert "chmod go-w" in refusal(file, account).hint
    with pytest.raises(CredentialsError):
        FileStore(file).set_secret(account, Secret("new"))
    assert b"hunter2" in file.read_bytes()


def _as_directory(file):
    file.unlink()
    file.mkdir(mode=0o700)


def _as_link(file):
    file.symlink_to(file.rename(file.with_name("elsewhere.json")))


def _as_fifo(file):
    file.unlink()
    os.mkfifo(file, 0o600)


@posix_only
@pytest.mark.parametrize(
    ("change", "said"),
    [(_as_link, "symbolic link"), (_as_fifo, "not a regular file"), (_as_directory, ""),
     (lambda file: os.truncate(file, 1 << 36), "file too large")],
)  # fmt: skip
def test_what_is_not_a_small_file_of_ones_own_is_neither_read_nor_replaced(
    file, account, change, said
):
    change(file)
    assert said in refusal(file, account).message
    with pytest.raises(CredentialsError):
        FileStore(file).set_secret(account, Secret("new"))


@pytest.mark.parametrize(
    "content", [b"", b"{hunter2", b"\xff\xfe", b"[]", b'{"a": 1}', b"[" * 100_000]
)
def test_a_corrupt_file_is_refused_and_not_quoted(file, account, content):
    file.write_bytes(content)
    error = refusal(file, account)
    assert "login" in error.hint
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_corrupt_token_is_none(file, account):
    store = FileStore(file)
    now = time.time()
    store.set_token(account, Token(Secret("eyJ0"), now + 60, now))
    entries = json.loads(file.read_text(encoding="utf-8"))
    assert store.get_token(account) is not None
    damaged = {name: text.replace("eyJ0", "eyJ0\\t") for name, text in entries.items()}
    file.write_text(json.dumps(damaged), encoding="utf-8")
    assert store.get_token(account) is None


def test_a_token_of_unknown_age_is_none(file, account):
    """Earlier versions did not store when a token was obtained."""
    store = FileStore(file)
    store.set_token(account, Token(Secret("eyJ0"), time.time() + 60))
    assert store.get_token(account) is None


@settings(max_examples=50, deadline=None)
@given(st.binary() | st.text().map(lambda text: json.dumps({"a": text}).encode()))
def test_any_content_is_none_or_a_credentials_error(content):
    account = Account("https://auth.example", "https://api.example", "client-1")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "credentials.json")
        file.touch(mode=0o600)
        file.write_bytes(content)
        try:
            secret = FileStore(file).get_secret(account)
        except CredentialsError:
            return
        assert secret is None


@pytest.mark.parametrize("kind", Kind)
def test_one_trailing_newline_is_stripped(kind):
    for text in ("abc", "abc\n", "abc\r\n"):
        assert parse_entry(kind, Secret(text), "it") == Secret("abc")
    for text in ("", "\n", "\r\n"):
        assert parse_entry(kind, Secret(text), "it") is None


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("bad", ["\n\n", "\x00", "\x1b", "\x7f", "\x85", "\u20ac", "\udcff"])
def test_text_that_no_header_can_carry_is_refused_and_not_quoted(kind, bad):
    with pytest.raises(CredentialsError) as caught:
        parse_entry(kind, Secret(f"hunter2{bad}"), "DKIMCTL_SOMETHING")
    assert caught.value.message.startswith("DKIMCTL_SOMETHING ")
    assert "hunter2" not in repr(caught.value) + caught.value.hint


@pytest.mark.parametrize("text", ["a c ", "a\u00e9c"])
def test_a_secret_may_contain_more_characters_than_a_token(text):
    assert parse_entry(Kind.SECRET, Secret(text), "it") == Secret(text)
    with pytest.raises(CredentialsError):
        parse_entry(Kind.TOKEN, Secret(text), "it")


@given(st.text(st.characters(max_codepoint=0x17F)))
def test_an_accepted_secret_fits_a_header(text):
    try:
        secret = parse_entry(Kind.SECRET, Secret(text), "it")
    except CredentialsError:
        return
    accepted = "" if secret is None else secret.reveal()
    assert text in (accepted, f"{accepted}\n", f"{accepted}\r\n")
    assert not any(byte < 0x20 or 0x7F <= byte < 0xA0 for byte in accepted.encode("latin-1"))
