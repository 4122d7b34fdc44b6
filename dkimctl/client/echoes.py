"""What a service quotes of a secret it was sent, which must reach no stream, log or file."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import quote

_SHORTEST = 16  # characters; a shorter word may stand in an answer by chance


def _escaped(number: str) -> Callable[[str], str]:
    """Writes the signs that some libraries never leave as they are by their `number`."""
    return lambda text: re.sub("[+/=&<>'\"]", lambda sign: number % ord(sign[0]), text)


# JSON has several ways to write a sign; JSON quoted in JSON, more.
_SPELLINGS = (
    str,
    lambda text: text.replace("/", "\\/"),
    lambda text: text.replace("/", "\\\\/"),
    _escaped("\\u%04x"),
    _escaped("\\u%04X"),
)


@lru_cache(maxsize=8)
def forms_of(secret: str) -> tuple[str, ...]:
    """The ways in which `secret` could be quoted: as it is, in base64, in a URL, in JSON."""
    data = secret.encode()
    encoded = base64.b64encode(data).decode()
    forms = (
        secret,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(data).decode().rstrip("="),
        quote(secret, safe=""),
        quote(secret),
        quote(encoded, safe=""),
    )
    spelled = (spell(form) for spell in _SPELLINGS for form in forms)
    return tuple(dict.fromkeys(spelled))


def without(forms: Sequence[str], body: bytes) -> bytes:
    """`body` with `***` in place of each of the forms, but for short ones."""
    for form in forms:
        if len(form) >= _SHORTEST and form.encode() in body:
            body = body.replace(form.encode(), b"***")
    return body
