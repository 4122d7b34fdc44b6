"""RSA key pairs, and private keys encrypted with a passphrase."""

from __future__ import annotations

import base64
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.service.keys.encryption import (
    ENCRYPTED_HEADER,
    MAX_PASSPHRASE,
    PrivateKeyEncryptor,
    WrongPassphrase,
)
from dkimctl.service.keys.pairs import KeyPair, make_key

PASSPHRASE = "correct horse — ばね".encode()


@pytest.mark.interface("2.4", "value")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize("key_len", [1024, 2048])
def test_p_is_the_public_half_of_the_private_key(key_len: int) -> None:
    pair = make_key(key_len)
    options, _, encoded = pair.value.partition(" p=")
    assert options == "v=DKIM1; g=*; k=rsa;"
    public = serialization.load_der_public_key(base64.b64decode(encoded, validate=True))
    private = serialization.load_pem_private_key(pair.private_key, password=None)
    assert isinstance(public, rsa.RSAPublicKey)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert public.key_size == key_len
    signature = private.sign(b"message", padding.PKCS1v15(), hashes.SHA256())
    public.verify(signature, b"message", padding.PKCS1v15(), hashes.SHA256())


def test_every_key_is_new(fixed_keys: dict[int, KeyPair]) -> None:
    assert make_key(1024).value != fixed_keys[1024].value


def test_the_private_key_is_pkcs8_pem_and_not_in_the_repr(fixed_keys: dict[int, KeyPair]) -> None:
    pair = fixed_keys[1024]
    assert pair.private_key.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert "PRIVATE" not in repr(pair)


@pytest.fixture(scope="module")
def private_keys(fixed_keys):
    return [fixed_keys[key_len].private_key for key_len in (1024, 2048)]


@pytest.fixture(scope="module")
def encryptor():
    return PrivateKeyEncryptor(PASSPHRASE)


def test_only_the_same_passphrase_decrypts_a_key(private_keys, encryptor):
    for key in private_keys:
        encrypted = encryptor.encrypt(key)
        assert encrypted.startswith(ENCRYPTED_HEADER)
        assert not key.startswith(ENCRYPTED_HEADER)
        assert encryptor.decrypt(encrypted) == key
        assert PrivateKeyEncryptor(PASSPHRASE).decrypt(encrypted) == key
        with pytest.raises(WrongPassphrase):
            PrivateKeyEncryptor(b"another").decrypt(encrypted)


def test_encrypting_a_key_twice_gives_two_texts(private_keys, encryptor):
    assert encryptor.encrypt(private_keys[0]) != encryptor.encrypt(private_keys[0])


def test_openssl_decrypts_a_key_and_reports_scrypt(private_keys, encryptor, tmp_path, needs_tool):
    path = tmp_path / "key.pem"
    path.write_bytes(encryptor.encrypt(private_keys[1]))
    words = [
        needs_tool("openssl"),
        "pkey",
        "-in",
        str(path),
        "-passin",
        "pass:" + PASSPHRASE.decode(),
    ]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == private_keys[1]
    words = [needs_tool("openssl"), "asn1parse", "-in", str(path)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name in ("PBES2", "scrypt", "aes-256-cbc"):
        assert name in shown


@pytest.mark.skipif(sys.platform == "win32", reason="an environment of characters, not octets")
@pytest.mark.parametrize("passphrase", [b"\xff\xe4 ", b"\xed\xb3\xbf", b"p" * MAX_PASSPHRASE])
def test_openssl_decrypts_a_key_with_any_octets(private_keys, tmp_path, needs_tool, passphrase):
    path = tmp_path / "key.pem"
    path.write_bytes(PrivateKeyEncryptor(passphrase).encrypt(private_keys[0]))
    words = [needs_tool("openssl"), "pkey", "-in", str(path), "-passin", "env:P"]
    done = subprocess.run(words, capture_output=True, check=True, env={b"P": passphrase})
    assert done.stdout == private_keys[0]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(passphrase=st.binary(min_size=1, max_size=MAX_PASSPHRASE))
def test_any_passphrase_works(fixed_keys, passphrase):
    encrypted = PrivateKeyEncryptor(passphrase).encrypt(fixed_keys[1024].private_key)
    assert serialization.load_pem_private_key(encrypted, passphrase).key_size == 1024
