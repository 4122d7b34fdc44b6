"""DNS names and TXT data as master files write them (RFC 1035 section 5.1)."""

from __future__ import annotations

import re

MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)

_NOT_IN_QUOTES = re.compile(r"[^ !#-\[\]-~]")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def character_strings(value: str) -> list[bytes]:
    """The character-strings that a TXT record holds `value` in, at least one.

    A reader joins them with nothing between (RFC 6376 section 3.6.2.2); text beyond ASCII
    is UTF-8.
    """
    data = _encoded(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]


def txt_data(value: str) -> str:
    """`value` as the data of a TXT record: quoted strings, one space apart."""
    return " ".join(f'"{_escaped(part, _NOT_IN_QUOTES)}"' for part in character_strings(value))


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name, with its trailing dot; its dots part labels."""
    return _escaped(_encoded(fqdn.removesuffix(".")), _NOT_IN_NAME) + "."


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escaped(data: bytes, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(_escape, data.decode("latin-1"))


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}" if char in '"\\' else f"\\{ord(char):03d}"
