"""How a service may quote a secret, and what of it may be seen then: no 12 characters."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote

RUN = 12


def base64_within(data: bytes, before: int) -> str:
    """The characters of base64 that `data` alone determines, after `before` other bytes."""
    encoded = base64.b64encode(bytes(before) + data).decode()
    return encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


FORMS = {
    "plain": str,
    **{
        f"base64, after {before}": lambda text, n=before: base64_within(text.encode(), n)
        for before in range(3)
    },
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "percent": quote,
    "percent and slashes": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text)),
}
ESCAPES = {
    "slashes": lambda text: text.replace("/", "\\/"),
    "unicode": lambda text: re.sub("[+=&<>']", lambda char: f"\\u{ord(char[0]):04X}", text),
}


def runs_of(secret: str) -> set[bytes]:
    """All that must not be seen of `secret`: 12 characters of any of its forms."""
    return {run for form in FORMS.values() for run in _runs(form(secret).encode())}


def leaks(data: bytes, runs: Iterable[bytes]) -> set[bytes]:
    """Those of `runs` that `data` contains."""
    return _runs(data) & runs


def quotations(secret: str) -> list[str]:
    """Parts of `secret` in every form: the halves, the middle, all but a character, the least."""
    quotations = []
    for form in FORMS.values():
        text = form(secret)
        middle = len(text) // 2
        quotations += [text, text[:middle], text[middle:], text[5:-5], text[:-1], text[1:]]
    for before in ("Authorization: Bearer ", "Basic ", "token="):
        quotations.append(base64.b64encode(f"{before}{secret} and more".encode()).decode())
    return [*quotations, *(escape(secret) for escape in ESCAPES.values())]


def _runs(data: bytes) -> set[bytes]:
    return {data[start : start + RUN] for start in range(len(data) - RUN + 1)}
