"""Private keys under a passphrase."""

from __future__ import annotations

import subprocess
from contextlib import closing

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.service import registrations
from dkimctl.service.clients import create_client
from dkimctl.service.keys import make_key
from dkimctl.service.registrations import Registration, require_passphrase
from dkimctl.service.sealing import Sealer, WrongPassphrase, is_sealed
from dkimctl.service.store import Store

PASSPHRASE = "correct horse — ばね"


@pytest.fixture(scope="module")
def keys():
    return [make_key(bits).private_key for bits in (1024, 2048)]


@pytest.fixture(scope="module")
def sealer():
    return Sealer(PASSPHRASE)


def test_what_is_sealed_is_opened_by_the_passphrase_alone(keys, sealer):
    for key in keys:
        sealed = sealer.seal(key)
        assert is_sealed(sealed)
        assert not is_sealed(key)
        assert sealer.open(sealed) == key
        assert Sealer(PASSPHRASE).open(sealed) == key
        with pytest.raises(WrongPassphrase):
            Sealer("another").open(sealed)


def test_the_same_key_is_sealed_otherwise_each_time(keys, sealer):
    assert sealer.seal(keys[0]) != sealer.seal(keys[0])


def test_openssl_reads_it_and_names_scrypt(keys, sealer, tmp_path, needs_tool):
    path = tmp_path / "key.pem"
    path.write_bytes(sealer.seal(keys[1]))
    words = [needs_tool("openssl"), "pkey", "-in", str(path), "-passin", f"pass:{PASSPHRASE}"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == keys[1]
    words = [needs_tool("openssl"), "asn1parse", "-in", str(path)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name in ("PBES2", "scrypt", "aes-256-cbc"):
        assert name in shown


@settings(max_examples=10, deadline=None)
@given(st.text(min_size=1))
def test_any_passphrase_will_do(passphrase):
    key = make_key(1024).private_key
    sealed = Sealer(passphrase).seal(key)
    password = passphrase.encode("utf-8", "surrogatepass")
    assert serialization.load_pem_private_key(sealed, password).key_size == 1024


@pytest.fixture
def path(tmp_path):
    """A data file with a registration whose key is not sealed."""
    path = tmp_path / "service.db"
    with closing(Store.open(path)) as store:
        create_client(store, "me")
        register(store, "old.example")
    return path


def register(store: Store, domain: str) -> bytes:
    pair = make_key(1024)
    made = Registration(
        "me", domain, "s1", 1024, "2026-11-21T12:00+00:00", 0, True, pair.value,
        "2026-11-21T12:00:00+00:00",
    )  # fmt: skip
    assert registrations.add(store, made, pair.private_key)
    return pair.private_key


def test_with_a_passphrase_old_keys_are_sealed_and_leave_no_trace(path, sealer):
    with closing(Store.open(path)) as store:
        old = registrations.private_key(store, "old.example", "s1")
    with closing(Store.open(path, sealer)) as store:
        require_passphrase(store)
        new = register(store, "new.example")
        assert registrations.private_key(store, "old.example", "s1") == old
        assert registrations.private_key(store, "new.example", "s1") == new
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for key in (old, new):
        assert key.split(b"\n")[3] not in data
    assert b"BEGIN PRIVATE KEY" not in data


@pytest.mark.parametrize(("passphrase", "words"), [(None, "a passphrase"), ("x", "another")])
def test_another_passphrase_or_none_is_refused(path, sealer, passphrase, words):
    with closing(Store.open(path, sealer)) as store:
        require_passphrase(store)
    other = None if passphrase is None else Sealer(passphrase)
    with closing(Store.open(path, other)) as store:
        with pytest.raises(UsageError, match=f"sealed with {words}") as caught:
            require_passphrase(store)
        assert "DKIMCTL_SERVICE_PASSPHRASE" in caught.value.hint


def test_an_empty_file_takes_any_passphrase(tmp_path, sealer):
    with closing(Store.open(tmp_path / "service.db", sealer)) as store:
        require_passphrase(store)
