from __future__ import annotations

import base64
import time

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dkimctl.service.keys import KeyPair, key_pool, make_key


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


def test_every_key_is_another(fixed_keys: dict[int, KeyPair]) -> None:
    assert make_key(1024).value != fixed_keys[1024].value


def test_the_private_key_is_pkcs8_pem_and_not_in_the_repr(fixed_keys: dict[int, KeyPair]) -> None:
    pair = fixed_keys[1024]
    assert pair.private_key.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert "PRIVATE" not in repr(pair)


def test_the_workshop_makes_the_keys_that_are_ordered() -> None:
    with key_pool(lambda key_len: KeyPair(str(key_len), b"")) as order_key:
        ordered = [order_key(key_len) for key_len in (1024, 2048, 1024)]
        assert [key.result().value for key in ordered] == ["1024", "2048", "1024"]


def test_a_workshop_that_is_left_early_begins_no_more_keys() -> None:
    begun: list[int] = []

    def make(key_len: int) -> KeyPair:
        begun.append(key_len)
        time.sleep(0.01)
        return KeyPair("", b"")

    def order_many_and_leave() -> None:
        with key_pool(make) as order_key:
            for _ in range(1_000):
                order_key(1024)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        order_many_and_leave()
    assert len(begun) < 1_000
