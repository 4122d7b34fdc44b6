"""The strings of a TXT record (RFC 1035 section 3.3.14)."""

MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)


def character_strings(value: str) -> list[bytes]:
    """`value` as the character-strings of a TXT record, at least one; non-ASCII text is UTF-8.

    A verifier concatenates them (RFC 6376 section 3.6.2.2).
    """
    data = utf8(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]


def utf8(text: str) -> bytes:
    """`text` in UTF-8; surrogates, which have none, as if they had."""
    return text.encode("utf-8", "surrogatepass")
