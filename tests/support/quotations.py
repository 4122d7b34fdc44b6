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


def every_character(text: str, template: str) -> str:
    return "".join(template % byte for byte in text.encode())


FORMS = {
    "plain": str,
    **{
        f"base64, after {before}": lambda text, n=before: base64_within(text.encode(), n)
        for before in range(3)
    },
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "hex:": lambda text: text.encode().hex(":"),
    "HEX ": lambda text: text.encode().hex(" ").upper(),
    "percent": quote,
    "percent and slashes": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text)),
    "percent everywhere": lambda text: every_character(text, "%%%02x"),
    "PERCENT everywhere": lambda text: every_character(text, "%%%02X"),
}
ESCAPES = {
    "slashes": lambda text: text.replace("/", "\\/"),
    "escaped slashes": lambda text: text.replace("/", "\\\\/"),
    "unicode": lambda text: every_character(text, "\\u%04x"),
    "UNICODE, escaped": lambda text: every_character(text, "\\\\u%04X"),
    "some unicode": lambda text: re.sub("[+/=a-f]", lambda char: f"\\u{ord(char[0]):04x}", text),
    "octets": lambda text: every_character(text, "\\x%02x"),
    "percent": lambda text: quote(text, safe=""),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent here and there": lambda text: re.sub("[a-m]", lambda c: f"%{ord(c[0]):x}", text),
    "percent in JSON": lambda text: re.sub("[a-m]", lambda c: f"\\u0025{ord(c[0]):x}", text),
    "UTF-16": lambda text: text.encode("utf-16-le").decode().rstrip("\0"),
}
BREAKS = ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n", "\n    ", "\r\n\t", "\\n  ", "\\u000a", "%0D%0A",
          "\0\r\0\n\0 \0"]  # fmt: skip


def runs_of(secret: str) -> set[bytes]:
    """All that must not be seen of `secret`: 12 characters of any of its forms."""
    return {run for form in FORMS.values() for run in _runs(form(secret).encode())}


def leaks(data: bytes, runs: Iterable[bytes]) -> set[bytes]:
    """Those of `runs` that `data` contains."""
    return _runs(data) & runs


def quotations(secret: str) -> list[str]:
    """Parts of `secret` in every form: the halves, the middle, all but a character, the least."""
    quotations = []
    for name, form in FORMS.items():
        text = form(secret)
        middle = len(text) // 2
        parts = [text, text[:middle], text[middle:], text[5:-5], text[:-1], text[1:], text[3:15]]
        quotations += parts
        if "percent" not in name.lower():  # a line break could cut an escape
            quotations += ["\n".join(_lines(part, 20)) for part in parts]
    for before in ("Bearer ", "Authorization: Bearer ", "Basic ", "token="):
        encoded = base64.b64encode(f"{before}{secret} and more".encode()).decode()
        quotations += [encoded, "\r\n".join(_lines(encoded, 76))]
    quotations += [escape(secret) for escape in ESCAPES.values()]
    return quotations


def _runs(data: bytes) -> set[bytes]:
    return {data[start : start + RUN] for start in range(len(data) - RUN + 1)}


def _lines(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]
