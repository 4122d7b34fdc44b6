"""Private keys under a passphrase."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.service.encryption import (
    MAX_PASSPHRASE,
    PrivateKeyEncryptor,
    WrongPassphrase,
    is_sealed,
)
from dkimctl.service.keys import make_key

PASSPHRASE = "correct horse — ばね".encode()


@pytest.fixture(scope="module")
def keys():
    return [make_key(bits).private_key for bits in (1024, 2048)]


@pytest.fixture(scope="module")
def sealer():
    return PrivateKeyEncryptor(PASSPHRASE)


def test_what_is_sealed_is_opened_by_the_passphrase_alone(keys, sealer):
    for key in keys:
        sealed = sealer.seal(key)
        assert is_sealed(sealed)
        assert not is_sealed(key)
        assert sealer.open(sealed) == key
        assert PrivateKeyEncryptor(PASSPHRASE).open(sealed) == key
        with pytest.raises(WrongPassphrase):
            PrivateKeyEncryptor(b"another").open(sealed)


def test_the_same_key_is_sealed_otherwise_each_time(keys, sealer):
    assert sealer.seal(keys[0]) != sealer.seal(keys[0])


def test_openssl_reads_it_and_names_scrypt(keys, sealer, tmp_path, needs_tool):
    path = tmp_path / "key.pem"
    path.write_bytes(sealer.seal(keys[1]))
    words = [
        needs_tool("openssl"),
        "pkey",
        "-in",
        str(path),
        "-passin",
        "pass:" + PASSPHRASE.decode(),
    ]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == keys[1]
    words = [needs_tool("openssl"), "asn1parse", "-in", str(path)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name in ("PBES2", "scrypt", "aes-256-cbc"):
        assert name in shown


@pytest.mark.skipif(sys.platform == "win32", reason="an environment of characters, not octets")
@pytest.mark.parametrize("passphrase", [b"\xff\xe4 ", b"\xed\xb3\xbf", b"p" * MAX_PASSPHRASE])
def test_openssl_reads_it_whatever_the_octets(keys, tmp_path, needs_tool, passphrase):
    path = tmp_path / "key.pem"
    path.write_bytes(PrivateKeyEncryptor(passphrase).seal(keys[0]))
    words = [needs_tool("openssl"), "pkey", "-in", str(path), "-passin", "env:P"]
    done = subprocess.run(words, capture_output=True, check=True, env={b"P": passphrase})
    assert done.stdout == keys[0]


@settings(max_examples=10, deadline=None)
@given(st.binary(min_size=1, max_size=MAX_PASSPHRASE))
def test_any_passphrase_will_do(passphrase):
    key = make_key(1024).private_key
    sealed = PrivateKeyEncryptor(passphrase).seal(key)
    assert serialization.load_pem_private_key(sealed, passphrase).key_size == 1024
