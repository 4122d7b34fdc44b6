"""Keeps secrets that the service echoes out of every stream, log and file."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from urllib.parse import quote

from dkimctl.models.secret import Secret

_MIN_LENGTH = 16  # characters; a shorter text may occur in a response by chance


def _escaping(template: str) -> Callable[[str], str]:
    """Escapes, by `template`, the characters that some JSON libraries always escape."""
    return lambda text: re.sub("[+/=&<>'\"]", lambda char: template % ord(char[0]), text)


# JSON has several spellings of a character, and JSON inside JSON has more.
_SPELLINGS = (
    str,
    lambda text: text.replace("/", "\\/"),
    lambda text: text.replace("/", "\\\\/"),
    _escaping("\\u%04x"),
    _escaping("\\u%04X"),
)


def contains_secret(text: str, secrets: Iterable[Secret]) -> bool:
    """Whether `text` contains one of `secrets` in any of its encodings."""
    return any(form in text for secret in secrets for form in _encodings(secret))


def redact(body: bytes, secrets: Iterable[Secret]) -> bytes:
    """`body` with `***` for every encoding, of 16 characters or more, of `secrets`."""
    for form in chain.from_iterable(map(_encodings, tuple(secrets))):
        if len(form) >= _MIN_LENGTH and form.encode() in body:
            body = body.replace(form.encode(), b"***")
    return body


@lru_cache(maxsize=8)
def _encodings(secret: Secret) -> tuple[str, ...]:
    """`secret` as it is, in base64, URL-encoded, and each of them in JSON."""
    text = secret.reveal()
    data = text.encode()
    encoded = base64.b64encode(data).decode()
    forms = (
        text,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(data).decode().rstrip("="),
        quote(text, safe=""),
        quote(text),
        quote(encoded, safe=""),
    )
    spellings = (spell(form) for spell in _SPELLINGS for form in forms)
    return tuple(dict.fromkeys(spellings))
