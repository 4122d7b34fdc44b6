"""Signed mail that is intact, or was damaged on its way, and keys that are right, or wrong."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from email.header import Header
from functools import cache
from typing import Any, NamedTuple

import dkim
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PASS, FAIL = "pass", "fail"
DOMAIN = "example.com"
MAIL = (
    b"From: Joe <joe@example.com>\r\nTo: someone@example.net\r\nSubject: A  subject\r\n"
    b"Date: Wed, 06 Jan 2027 10:00:00 +0000\r\nMessage-ID: <1@example.com>\r\n\r\n"
    b"Verify this.\r\n\r\nThe  last line. \r\n"
)


@cache
def key_pair(bits: int) -> tuple[bytes, str]:
    """A private key (PEM), and its key record."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem, f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"


def rsa_record(bits: int, exponent: int = 65537) -> str:
    """A record with a public key (RSAPublicKey) that nobody has the private one of."""
    inner = b"".join(map(_integer, (1 << bits - 1 | 1, exponent)))
    der = b"0\x82" + len(inner).to_bytes(2) + inner
    return f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"


def _integer(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1)
    return b"\x02\x82" + len(data).to_bytes(2) + data


class Case(NamedTuple):
    """A mail that is signed, and then damaged; and what DNS has of its key, made of the right one.

    `reason` is a part of what we say. `because`: why other verifiers differ.
    """

    name: str  # the selector, too
    verdict: str
    reason: str = ""
    damage: Callable[[bytes], bytes] = lambda mail: mail
    record: Callable[[str], Sequence[str]] = lambda value: [value]
    mail: bytes = MAIL
    options: Mapping[str, Any] = {}
    bits: int = 2048
    because: str = ""

    def received(self) -> bytes:
        """The mail as it arrives."""
        return self.damage(signed(self.mail, self.name, self.bits, **self.options))

    def values(self) -> Sequence[str]:
        """What DNS has at the name of the key."""
        return self.record(key_pair(self.bits)[1])


def signed(
    mail: bytes, selector: str = "s1", bits: int = 2048, domain: str = DOMAIN, **options: Any
) -> bytes:
    pem, _ = key_pair(bits)
    return dkim.sign(mail, selector.encode(), domain.encode(), pem, **options) + mail


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def damage(mail: bytes) -> bytes:
        assert old in mail
        return mail.replace(old, new)

    return damage


def _encoded(mail: bytes) -> bytes:
    """The signature as encoded words."""
    value, rest = re.split(rb"\r\n(?![ \t])", mail.removeprefix(b"DKIM-Signature: "), maxsplit=1)
    words = Header(re.sub(rb"\s+", b" ", value).decode(), "utf-8", 76, "DKIM-Signature").encode()
    return b"DKIM-Signature: " + words.replace("\n", "\r\n").encode() + b"\r\n" + rest


def _without_from(mail: bytes) -> bytes:
    return re.sub(rb"h=from : ", b"h=", mail).replace(b" : from;", b";")


RELAXED = {"canonicalize": (b"relaxed", b"relaxed")}
SIMPLE = {"canonicalize": (b"simple", b"simple")}
_CHANGED, _HEADER = "the body was changed", "a signed header field was changed"

CASES = [
    Case("intact", PASS),
    Case("intactrelaxed", PASS, options=RELAXED),
    Case("intactsimple", PASS, options=SIMPLE),
    Case("emptybody", PASS, mail=MAIL.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"),
    Case("moreemptylines", PASS, damage=lambda mail: mail + b"\r\n\r\n"),
    Case("spaces", PASS, damage=replaced(b"last line. ", b"last \t line."), options=RELAXED),
    Case("spacessimple", FAIL, _CHANGED, replaced(b"last line. ", b"last line.")),
    Case("subjectspaces", PASS, damage=replaced(b"A  subject", b"A subject ")),
    Case("subjectspacessimple", FAIL, _HEADER, replaced(b"A  sub", b"A sub"), options=SIMPLE),
    Case("foldedsubject", PASS, damage=replaced(b"A  subject", b"A\r\n subject")),
    Case("namecase", PASS, damage=replaced(b"Subject:", b"SUBJECT:")),
    Case("received", PASS, damage=lambda mail: b"Received: by mx.example.net\r\n" + mail),
    Case("body", FAIL, _CHANGED, replaced(b"Verify this.", b"Verify that.")),
    Case("footer", FAIL, _CHANGED, lambda mail: mail + b"-- \r\na list\r\n"),
    Case("footerlength", PASS, damage=lambda mail: mail + b"a list\r\n", options={"length": True}),
    Case("subject", FAIL, _HEADER, replaced(b"Subject: ", b"Subject: [list] ")),
    Case("to", FAIL, _HEADER, replaced(b"To: someone", b"To: anyone")),
    Case("secondfrom", FAIL, _HEADER, replaced(b"\r\nTo:", b"\r\nFrom: a@b.example\r\nTo:")),
    Case("signature", FAIL, _HEADER, lambda mail: re.sub(rb" b=(.)", _other_letter, mail, count=1)),
    Case("bodyhash", FAIL, _CHANGED, lambda mail: re.sub(rb"bh=(.)", _other_letter, mail)),
    Case("untimely", FAIL, _HEADER, lambda mail: re.sub(rb" t=\d+;", b" t=1700000000;", mail)),
    Case("expired", FAIL, "expired on 2023-11-14", replaced(b"; s=", b"; x=1700000000; s=")),
    Case("future", FAIL, "in the future", lambda mail: re.sub(rb" t=\d+", b" t=9000000000", mail)),
    Case("nofrom", FAIL, "the From field is not signed", _without_from),
    Case("encoded", FAIL, "has encoded the field (RFC 2047)", _encoded,
         because="rspamd decodes encoded words; dkimpy, OpenDKIM and Mail::DKIM do not"),
    Case("nobodyhash", FAIL, "it has no bh=", lambda mail: re.sub(rb"bh=[^;]+;", b"", mail)),
    Case("version", FAIL, "unsupported version", replaced(b"v=1;", b"v=2;")),
    Case("algorithm", FAIL, "unsupported algorithm", replaced(b"a=rsa-sha256", b"a=rsa-md5")),
    Case("sha1", FAIL, "rsa-sha1 is not secure", options={"signature_algorithm": b"rsa-sha1"},
         because="opendkim and rspamd accept rsa-sha1, against RFC 8301"),
    Case("agent", FAIL, "is not in its signing domain", replaced(b"i=@example.com", b"i=@a.test")),
    Case("twotags", FAIL, "occurs twice", replaced(b"; s=", b"; a=rsa-sha256; s=")),
    Case("nokey", FAIL, "there is no key record", record=lambda value: []),
    Case("revoked", FAIL, "is revoked", record=lambda value: ["v=DKIM1; p="]),
    Case("cut", FAIL, "is malformed or truncated", record=lambda value: [value[:200]]),
    Case("otherkey", FAIL, _HEADER, record=lambda value: [_other_key()]),
    Case("spf", FAIL, "is not a DKIM key record", record=lambda value: ["v=spf1 -all"]),
    Case("quotedkey", FAIL, "is malformed", record=lambda value: [f'"{value}"']),
    Case("quotedp", PASS, record=lambda value: [value.replace("p=", 'p="') + '"'],
         because="rspamd refuses quotation marks, which dkimpy, OpenDKIM and Mail::DKIM leave out"),
    Case("morebytes", PASS, record=lambda value: [f"{value}AAAA"]),
    Case("morepadding", FAIL, "is malformed", record=lambda value: [f"{value}=="]),
    Case("keytype", FAIL, "another type", record=lambda value: [value.replace("=rsa", "=dsa")],
         because="rspamd takes a key of any type that it does not know for an RSA key"),
    Case("keyhash", FAIL, "does not allow sha256", record=lambda value: [f"{value}; h=sha1"],
         because="rspamd does not look at h= of the key"),
    Case("service", FAIL, "is not for mail", record=lambda value: [f"{value}; s=web"],
         because="rspamd does not look at s= of the key"),
    Case("testing", PASS, record=lambda value: [f"{value}; t=y"]),
    Case("spacedkey", PASS, record=lambda value: [value.replace("; ", " ;  ")]),
    Case("weak", FAIL, "weak key of 768 bits", record=lambda value: [rsa_record(768)]),
    Case("long", FAIL, "a key that is too long", record=lambda value: [rsa_record(16_385)]),
    Case("short", PASS, bits=1024),
]  # fmt: skip


def _other_letter(match: re.Match[bytes]) -> bytes:
    letter = b"A" if match[1] != b"A" else b"B"
    return match[0][: -len(match[1])] + letter


def _other_key() -> str:
    return key_pair(3072)[1]
