"""The credential file is private, replaced as a whole, and refused if others can access it."""

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

from dkimctl.credentials.sources import open_store
from dkimctl.credentials.store import Account
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret, Token

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")


@pytest.fixture
def file(tmp_path, account):
    """A credential file with the secret `hunter2`."""
    state_dir = tmp_path / "deep" / "state"
    open_store("file", state_dir).set_secret(account, Secret("hunter2"))
    return state_dir / "credentials.json"


def refusal(file: Path, account: Account, state_dir: Path | None = None) -> CredentialsError:
    with pytest.raises(CredentialsError) as caught:
        open_store("file", state_dir or file.parent).get_secret(account)
    assert str(file) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_it_is_replaced_as_a_whole_without_leftovers(file, account):
    with file.open("rb") as before:
        open_store("file", file.parent).set_secret(account, Secret("new"))
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
    assert "chmod go-w" in refusal(file.parent, account, file.parent).hint
    with pytest.raises(CredentialsError):
        open_store("file", file.parent).set_secret(account, Secret("new"))
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
        open_store("file", file.parent).set_secret(account, Secret("new"))


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
    store = open_store("file", file.parent)
    now = time.time()
    store.set_token(account, Token(Secret("eyJ0"), now + 60, now))
    entries = json.loads(file.read_text(encoding="utf-8"))
    assert store.get_token(account) is not None
    damaged = {name: text.replace("eyJ0", "eyJ0\\t") for name, text in entries.items()}
    file.write_text(json.dumps(damaged), encoding="utf-8")
    assert store.get_token(account) is None


def test_a_token_of_unknown_age_is_none(file, account):
    """Earlier versions did not store when a token was obtained."""
    store = open_store("file", file.parent)
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
            secret = open_store("file", Path(directory)).get_secret(account)
        except CredentialsError:
            return
        assert secret is None
