"""The key record of a signature: whether it can verify it (RFC 6376 section 6.1.2)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dkimctl.dkim import KeyRecordError, parse_public_key, parse_tag_list
from dkimctl.mail.signature import ED25519, Signature
from dkimctl.text.escaping import quoted

_MIN_BITS = 1024  # RFC 8301 section 3.2
# Longer ones take long to verify with; these are the limits of OpenSSL.
_MAX_BITS = 16_384
_MAX_EXPONENT_BITS = 64
_ED25519_BYTES = 32
_MAX_VALUE = 8_192  # characters


class Key(NamedTuple):
    """A public key. `value` is a key record with it alone, `key_len` in bits."""

    value: bytes
    key_len: int
    flags: frozenset[str]


def read_key(value: str, signature: Signature) -> Key:
    """The key in a TXT value. Raises KeyRecordError: why it cannot verify the signature.

    Its text completes "the key record …".
    """
    if len(value) > _MAX_VALUE:
        raise KeyRecordError(f"has {len(value):,} characters, more than {_MAX_VALUE:,}")
    try:
        tags = parse_tag_list(value, tolerant=True)
    except KeyRecordError as error:
        raise KeyRecordError(f"is malformed: {error}") from None
    if fault := next(_faults(tags, signature), ""):
        raise KeyRecordError(fault)
    key = re.sub(r"\s", "", tags["p"])
    kind = signature.algorithm.partition("-")[0]
    key_len = _ed25519_bits(key) if signature.algorithm == ED25519 else _rsa_bits(key)
    return Key(f"v=DKIM1; k={kind}; p={key}".encode(), key_len, _items(tags.get("t", "")))


def _faults(tags: Mapping[str, str], signature: Signature) -> Iterator[str]:
    if tags.get("v", "DKIM1") != "DKIM1" or "p" not in tags:
        yield "is not a DKIM key record"
    if not tags["p"]:
        yield "is revoked: its key is empty (p=)"
    if not tags["p"].isascii():
        yield "is malformed: its p= is not base64"
    kind, _, hash_name = signature.algorithm.partition("-")
    if tags.get("k", "rsa") != kind:
        yield f"has a key of another type, k={quoted(tags.get('k', 'rsa'))}"
    if "h" in tags and hash_name not in _items(tags["h"]):
        yield f"does not allow {hash_name} (h=)"
    if "s" in tags and not _items(tags["s"]) & {"*", "email"}:
        yield "is not for mail (s=)"
    agent = signature.tags.get("i", "").rpartition("@")[2].lower()
    if "s" in _items(tags.get("t", "")) and agent not in ("", signature.tags["d"].lower()):
        yield "does not allow i= to be in a subdomain (t=s)"


def _rsa_bits(text: str) -> int:
    try:
        key = parse_public_key(text)
    except KeyRecordError as error:
        raise KeyRecordError(f"is malformed or truncated: {error}") from None
    if key.key_len < _MIN_BITS:
        raise KeyRecordError(
            f"has a weak key of {key.key_len} bits: receivers accept {_MIN_BITS} or more (RFC 8301)"
        )
    if key.key_len > _MAX_BITS or key.exponent.bit_length() > _MAX_EXPONENT_BITS:
        raise KeyRecordError("has a key that is too long")
    return key.key_len


def _ed25519_bits(text: str) -> int:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != _ED25519_BYTES:
        raise KeyRecordError("is malformed: its p= is not an Ed25519 key")
    return 8 * len(key)


def _items(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"\s", "", text).split(":"))
