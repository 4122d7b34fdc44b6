"""What a service quotes of a secret it was sent, which must reach no stream, log or file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

_SHORTEST = 16  # characters; a shorter word may stand in an answer by chance


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
    # JSON may write a slash with a backslash; JSON quoted in JSON, with two.
    slashes = ("/", "\\/", "\\\\/")
    return tuple(dict.fromkeys(form.replace("/", slash) for slash in slashes for form in forms))


def without(forms: Sequence[str], body: bytes) -> bytes:
    """`body` with `***` in place of each of the forms, but for short ones."""
    for form in forms:
        if len(form) >= _SHORTEST and form.encode() in body:
            body = body.replace(form.encode(), b"***")
    return body
