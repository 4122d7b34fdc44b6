"""The forms in which a response may quote a secret, and text without its escapes."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from urllib.parse import quote

_URL_SAFE = bytes.maketrans(b"+/", b"-_")  # RFC 4648 section 5
# The characters of base64 before those that a secret alone determines, if 0, 1 or 2 bytes that are
# no part of it share its first group of three: so with "Bearer TOKEN" in base64.
_SHARED = (0, 2, 3)
_SHORTEST = 4  # bytes
_LINE_BREAK = re.compile(rb"\n[\n \t\0]*")
_BLOCK = 1 << 16  # bytes that re.sub gets at once: it takes 60 times their memory
# What does not end a run: line breaks, with the indentation after them, the NULs of UTF-16, and
# escapes. JSON inside of JSON has more backslashes, and a percent sign can itself be encoded. Each
# alternative begins with a literal, which makes the search fast, and a row of backslashes is
# matched as a whole.
_JSON = rb"""
    \n[\r\n\ \t\0]* | \r[\r\n\ \t\0]* | \0
    | \\(?<!\\\\)\\*(?: (?:[rn\r\n]|u000[aAdD])(?:[\r\n\ \t]|\\+t)*
                      | u([0-9A-Fa-f]{4}) | x([0-9A-Fa-f]{2}) | ([^\\]) )"""
_PERCENT = rb"| %(?:25)*(?: 0[aAdD] | ([0-9A-Fa-f]{2}) )"
JSON_ESCAPE = re.compile(_JSON, re.VERBOSE)
ESCAPE = re.compile(_JSON + _PERCENT, re.VERBOSE)


def forms_of(secret: str) -> set[bytes]:
    """`secret` as it is, and in base64, hex and percent-encoding; all in lower case."""
    data = secret.encode("utf-8", "surrogatepass")
    in_base64 = [
        b64encode(bytes(before) + data).rstrip(b"=")[shared:]
        for before, shared in enumerate(_SHARED)
    ]
    in_hex = [data.hex(), data.hex(":"), data.hex(" "), f"%{data.hex('%')}"]
    forms = {data, unescape(data, ESCAPE), *in_base64, *(text.encode() for text in in_hex)}
    forms.update(form.translate(_URL_SAFE) for form in in_base64)
    forms.update(quote(form, safe).encode() for form in (data, *in_base64) for safe in ("", "/"))
    return {form.lower() for form in forms}


def short_forms_of(secret: str) -> set[bytes]:
    """`secret` as it is, and its other forms, without those that would occur by chance."""
    data = secret.encode("utf-8", "surrogatepass").lower()
    return {data, *(form for form in forms_of(secret) if len(form) >= _SHORTEST)}


def unescape(text: bytes, escape: re.Pattern[bytes]) -> bytes:
    """`text` with what each `escape`, one of the two patterns, stands for."""
    simple = text.replace(b"\\/", b"/")
    if b"\\" not in simple and b"%" not in simple:  # nearly always, and much faster
        return _unbroken(simple.replace(b"\r", b"\n")).replace(b"\0", b"")
    plain, done = bytearray(), 0
    for match in escape.finditer(text):
        plain += text[done : match.start()]
        plain += unescaped(match)
        done = match.end()
    return bytes(plain + text[done:])


def _unbroken(text: bytes) -> bytes:
    plain, end = bytearray(), 0
    while end < len(text):
        start, end = end, text.find(b"\n", end + _BLOCK)
        end = len(text) if end < 0 else end
        plain += _LINE_BREAK.sub(b"", text[start:end])
    return bytes(plain)


def unescaped(match: re.Match[bytes]) -> bytes:
    """What a match of a pattern stands for: nothing, for a line break."""
    return _meaning(match[0])


@lru_cache(maxsize=1024)
def _meaning(escape: bytes) -> bytes:
    match = ESCAPE.fullmatch(escape)
    code, octet, character, percent = match.groups(b"") if match else (b"",) * 4
    if code:
        return chr(int(code, 16)).encode("utf-8", "surrogatepass")
    return bytes.fromhex((octet or percent).decode()) or character
