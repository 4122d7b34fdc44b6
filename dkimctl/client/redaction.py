"""What a service quotes of a secret it was sent, which must reach no stream, log or file."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from urllib.parse import quote

from dkimctl.models.secret import Secret

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


def quotes(text: str, secrets: Iterable[Secret]) -> bool:
    """Whether `text` holds one of `secrets` in one of its forms."""
    return any(form in text for secret in secrets for form in _forms_of(secret))


def without(secrets: Iterable[Secret], body: bytes) -> bytes:
    """`body` with `***` in place of each form of `secrets`, but for short ones."""
    for form in chain.from_iterable(map(_forms_of, tuple(secrets))):
        if len(form) >= _SHORTEST and form.encode() in body:
            body = body.replace(form.encode(), b"***")
    return body


@lru_cache(maxsize=8)
def _forms_of(secret: Secret) -> tuple[str, ...]:
    """The ways in which `secret` could be quoted: as it is, in base64, in a URL, in JSON."""
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
    spelled = (spell(form) for spell in _SPELLINGS for form in forms)
    return tuple(dict.fromkeys(spelled))
