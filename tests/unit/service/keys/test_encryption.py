from __future__ import annotations

import time

import pytest
from cryptography.hazmat.primitives import serialization

from dkimctl.service.keys.encryption import PrivateKeyEncryptor, WrongPassphrase
from dkimctl.service.keys.pairs import KeyPair


@pytest.mark.parametrize("key_len", [1024, 2048])
def test_a_decrypted_key_is_the_one_that_was_encrypted(
    fixed_keys: dict[int, KeyPair], key_len: int
) -> None:
    pem = fixed_keys[key_len].private_key
    encrypted = PrivateKeyEncryptor(b"correct horse").encrypt(pem)
    assert PrivateKeyEncryptor(b"correct horse").decrypt(encrypted) == pem


def test_a_wrong_passphrase_is_noticed(fixed_keys: dict[int, KeyPair]) -> None:
    right, wrong = PrivateKeyEncryptor(b"right"), PrivateKeyEncryptor(b"wrong")
    for _ in range(600):  # of 256 wrong keys, one looks padded
        with pytest.raises(WrongPassphrase):
            wrong.decrypt(right.encrypt(fixed_keys[1024].private_key))


def test_a_key_that_another_program_encrypted_is_decrypted(
    fixed_keys: dict[int, KeyPair],
) -> None:
    pem = fixed_keys[1024].private_key
    key = serialization.load_pem_private_key(pem, None)
    foreign = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pw"),
    )
    assert PrivateKeyEncryptor(b"pw").decrypt(foreign) == pem
    with pytest.raises(WrongPassphrase):
        PrivateKeyEncryptor(b"px").decrypt(foreign)


def test_many_keys_of_one_service_take_hardly_longer_than_one(
    fixed_keys: dict[int, KeyPair],
) -> None:
    pem = fixed_keys[1024].private_key
    encryptor = PrivateKeyEncryptor(b"pw")
    encrypted = [encryptor.encrypt(pem) for _ in range(100)]
    reader = PrivateKeyEncryptor(b"pw")
    began = time.process_time()
    reader.decrypt(encrypted[0])
    first = time.process_time() - began
    for one in encrypted:
        reader.decrypt(one)
    assert time.process_time() - began < 10 * first
