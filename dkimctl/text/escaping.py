"""Text from elsewhere, made safe and short enough to show; and as the strings of a TXT record."""

from collections.abc import Sequence

# Not "printable" for Python, but common in French and Japanese.
_SPACES = "\u00a0\u3000"
# "Printable" for Python, but invisible: fillers and joiners. Variation selectors are not among
# them, since people's names contain them.
_HIDDEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"

_MAX_QUOTE = 60
MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)


def printable(text: str) -> str:
    r"""`text` on one line, without anything that a terminal would act on or hide.

    Control characters, line separators, bidirectional controls, fillers, zero-width characters and
    lone surrogates become `\xNN`, `\uNNNN` or `\UNNNNNNNN`; other text stays as it is.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in _SPACES or (char.isprintable() and char not in _HIDDEN) else _escaped(char)
        for char in text
    )


def quoted(text: str) -> str:
    """`text` in quotes for a message: `printable`, and cut at 60 characters."""
    cut = text[:_MAX_QUOTE] + "…" if len(text) > _MAX_QUOTE else text
    return f'"{printable(cut)}"'


def few(words: Sequence[str], limit: int = 5) -> str:
    """The first of `words`, for a message."""
    return ", ".join(words[:limit]) + (", …" if len(words) > limit else "")


def _escaped(char: str) -> str:
    number = ord(char)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def character_strings(value: str) -> list[bytes]:
    """The character-strings of a TXT record, which verifiers join (RFC 6376 section 3.6.2.2)."""
    data = utf8(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]


def utf8(text: str) -> bytes:
    """`text` in UTF-8; surrogates, which have none, as if they had."""
    return text.encode("utf-8", "surrogatepass")
