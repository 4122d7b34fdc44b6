"""Parse and check DKIM key records (RFC 6376 section 3.6.1)."""

import binascii
import contextlib
import re
from typing import NamedTuple

from dkimctl.models import REDACTED, Registration
from dkimctl.names import is_name
from dkimctl.text import utf8

MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)

# These patterns are text, which `re` compiles only if a record needs it.
_TAG_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_TOLERATED_NAME = r"[A-Za-z][!-:<>-~]*"  # that verifiers accept
_MAX_VALUE = 4096  # characters; a key of 16,384 bits has 2,766
_MIN_BITS = 1024  # RFC 8301 section 3.2: verifiers reject shorter keys

_SEQUENCE = 0x30
_INTEGER = 0x02
_RSA_ENCRYPTION = bytes.fromhex("06092a864886f70d010101")  # OID 1.2.840.113549.1.1.1


# The form of nearly all records, which is recognized ten times as fast as it is parsed: keys of the
# two lengths of interface 8, whose highest bit is set, and whose exponent is 65537.
_USUAL = (
    r"v=DKIM1; (?:g=\*; )?k=rsa; p=(?:"
    r"(MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ[CD][A-Za-z0-9+/]{170})|"
    r"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA[g-z0-9+/][A-Za-z0-9+/]{340})[Qw]IDAQAB"
)


class KeyRecordError(ValueError):
    """A TXT value is not a usable DKIM key record; the text says why."""


class PublicKey(NamedTuple):
    """An RSA public key."""

    der: bytes
    modulus: int
    exponent: int

    @property
    def key_len(self) -> int:
        """The length in bits."""
        return self.modulus.bit_length()

    def __str__(self) -> str:
        import hashlib

        return f"{self.key_len} bits, SHA-256 {hashlib.sha256(self.der).hexdigest()[:16]}"


def record_name(selector: str, sign_domain: str) -> str:
    """The FQDN of a key record, without trailing dot (RFC 6376 section 3.6.2.1)."""
    return f"{selector}._domainkey.{sign_domain}"


def is_tag_name(name: str) -> bool:
    """Whether `name` is a tag name by the grammar (RFC 6376 section 3.2)."""
    return re.fullmatch(_TAG_NAME, name) is not None


def parse_tag_list(text: str, *, tolerant: bool = False) -> dict[str, str]:
    """Parse a tag=value list (RFC 6376 section 3.2) into its tags, in order.

    `tolerant` accepts the names that verifiers do, such as with a hyphen. Raises KeyRecordError if
    the list violates the grammar or repeats a tag.
    """
    tags: dict[str, str] = {}
    specs = text.split(";")
    if not specs[-1].strip():
        specs.pop()
    for spec in specs:
        name, equals, value = spec.partition("=")
        name = name.strip()
        if not (equals and re.fullmatch(_TOLERATED_NAME if tolerant else _TAG_NAME, name)):
            raise KeyRecordError("it is not a list of tag=value pairs")
        if name in tags:
            raise KeyRecordError(f"its tag {name}= occurs twice")
        tags[name] = value.strip()
    return tags


def tag_items(value: str) -> frozenset[str]:
    """The items of a list separated by colons, such as the value of h= (RFC 6376 section 3.6.1)."""
    return frozenset("".join(value.split()).split(":"))


def parse_key_record(value: str) -> PublicKey:
    """The key in the TXT value of an RSA key record (RFC 6376 section 3.6.1).

    Raises KeyRecordError, whose text completes "the TXT value is not a DKIM key record: …".
    """
    if len(value) > _MAX_VALUE:
        raise KeyRecordError(f"it has {len(value)} characters, more than {_MAX_VALUE}")
    if not re.fullmatch(r"[ -~]+", value):
        raise KeyRecordError("it is empty or holds characters other than printable ASCII")
    tags = parse_tag_list(value)
    if "v" in tags and (next(iter(tags)) != "v" or tags["v"] != "DKIM1"):
        raise KeyRecordError("its tag v= is not a leading v=DKIM1")
    if tags.get("k", "rsa") != "rsa":
        raise KeyRecordError("its key type k= is not rsa")
    if not tags.get("p"):
        raise KeyRecordError("it has no public key in p=")
    return parse_public_key(tags["p"].replace(" ", ""))


def parse_public_key(text: str, *, may_have_more: bool = False) -> PublicKey:
    """Parse the value of p=, without spaces, perhaps with more after it. Raises KeyRecordError.

    The key is a SubjectPublicKeyInfo (RFC 5280 section 4.1). RFC 6376 says RSAPublicKey (RFC 8017
    appendix A.1.1), but its erratum 3017 and common practice SubjectPublicKeyInfo: both are
    accepted.
    """
    der = b""
    if text == padded(text):
        with contextlib.suppress(binascii.Error):
            der = binascii.a2b_base64(text, strict_mode=True)
    if not der:
        raise KeyRecordError("its p= is not base64")
    outer, rest = _read_element(der, _SEQUENCE)
    if rest and not may_have_more:
        raise KeyRecordError("its p= has bytes after the key")
    der = der[: len(der) - len(rest)]
    if outer[:1] == bytes([_SEQUENCE]):
        algorithm, rest = _read_element(outer, _SEQUENCE)
        if not algorithm.startswith(_RSA_ENCRYPTION):
            raise KeyRecordError("its p= is not an RSA key")
        bits, _ = _read_element(rest, 0x03)
        outer, _ = _read_element(bits[1:], _SEQUENCE)
    modulus, rest = _read_element(outer, _INTEGER)
    exponent, _ = _read_element(rest, _INTEGER)
    key = PublicKey(der, int.from_bytes(modulus), int.from_bytes(exponent))
    if key.modulus % 2 == 0 or key.exponent < 3:
        raise KeyRecordError("its p= is not an RSA key")
    return key


def padded(text: str) -> str:
    """Base64 `text` with as much padding as it needs (RFC 4648 section 4)."""
    digits = text.rstrip("=")
    return digits + "=" * (-len(digits) % 4)


def record_fault(registration: Registration) -> str:
    """Why the record of `registration` must not be published; "" if it may be."""
    record = registration.record
    if record is None:
        return "the service gave no DNS record"
    if record.type.upper() != "TXT":
        return f"the record type is {record.type}, not TXT"
    if not registration.selector:
        return "the service gave no selector"
    expected = record_name(registration.selector, registration.sign_domain)
    if record.fqdn.lower() != expected.lower():
        return f"the FQDN is {record.fqdn}, not {expected}"
    if not is_name(record.fqdn):
        return f"{record.fqdn} is not a valid DNS name"
    if REDACTED in record.value:  # a note in n= could hold it
        return f"the TXT value contains {REDACTED}, in place of a secret that the service quoted"
    try:
        usual = re.fullmatch(_USUAL, record.value)
        key_len = (1024 if usual[1] else 2048) if usual else parse_key_record(record.value).key_len
    except KeyRecordError as error:
        return f"the TXT value is not a DKIM key record: {error}"
    if key_len < _MIN_BITS:
        return f"the key has {key_len} bits, fewer than {_MIN_BITS}"
    if registration.key_len is not None and key_len != registration.key_len:
        return f"the key has {key_len} bits, not {registration.key_len}"
    return ""


def with_key_len(registration: Registration) -> Registration:
    """`registration` with the length of its key, if the service omitted it."""
    if registration.key_len is not None or registration.record is None:
        return registration
    try:
        return registration._replace(key_len=parse_key_record(registration.record.value).key_len)
    except KeyRecordError:
        return registration


def _read_element(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """Split DER (X.690) into the contents of its first element, of type `tag`, and the rest."""
    if len(der) < 2 or der[0] != tag:
        raise KeyRecordError("its p= is not an RSA key")
    start, length = 2, der[1]
    if length >= 0x80:
        start += length - 0x80
        length = int.from_bytes(der[2:start])
    if len(der) < start + length:
        raise KeyRecordError("its p= is cut short")
    return der[start : start + length], der[start + length :]


def character_strings(value: str) -> list[bytes]:
    """The character-strings of a TXT record, which verifiers join (RFC 6376 section 3.6.2.2)."""
    data = utf8(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]
