"""DNS names and TXT data as master files write them (RFC 1035 section 5.1)."""

from __future__ import annotations

import re

MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)

# The bytes that stand as they are, in a quoted string and in a name.
_PLAIN_IN_QUOTES = bytes(set(range(0x20, 0x7F)) - set(b'"\\'))
_PLAIN_IN_NAME = bytes(byte for byte in range(0x80) if chr(byte).isalnum()) + b"_.-"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]")


def character_strings(value: str) -> list[bytes]:
    """The character-strings that a TXT record holds `value` in, at least one.

    A reader joins them with nothing between (RFC 6376 section 3.6.2.2); text beyond ASCII
    is UTF-8.
    """
    data = _encoded(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]


def txt_data(value: str) -> str:
    """`value` as the data of a TXT record: quoted strings, one space apart."""
    if not _encoded(value).translate(None, _PLAIN_IN_QUOTES):  # mostly
        text = f'"{value[:MAX_STRING]}'
        for at in range(MAX_STRING, len(value), MAX_STRING):
            text += f'" "{value[at : at + MAX_STRING]}'
        return f'{text}"'
    return " ".join(f'"{_escaped(part, _PLAIN_IN_QUOTES)}"' for part in character_strings(value))


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name, with its trailing dot; its dots part labels."""
    if _PLAIN_NAME.fullmatch(fqdn):  # mostly
        return f"{fqdn}."
    return _escaped(_encoded(fqdn.removesuffix(".")), _PLAIN_IN_NAME) + "."


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escaped(data: bytes, plain: bytes) -> str:
    if not data.translate(None, plain):
        return data.decode("ascii")
    return "".join(chr(byte) if byte in plain else _escape(byte) for byte in data)


def _escape(byte: int) -> str:
    return f"\\{chr(byte)}" if byte in b'"\\' else f"\\{byte:03d}"
