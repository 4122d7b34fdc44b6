"""Text from elsewhere, made safe to show."""

# Not "printable" to Python, yet ordinary in French and Japanese.
_SPACES = "\u00a0\u3000"
# "Printable" to Python, yet nothing is seen of them: fillers, and what joins. Selectors of variants
# are in the names of people.
_HIDDEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"


def printable(text: str) -> str:
    r"""`text` on one line, with nothing in it that a terminal would act on or hide.

    Control characters, line separators, bidirectional controls, fillers, zero-width characters and
    lone surrogates become `\xNN`, `\uNNNN` or `\UNNNNNNNN`; all other text stays as it is.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_visible(char) else _escaped(char) for char in text)


def _is_visible(char: str) -> bool:
    return (char.isprintable() and char not in _HIDDEN) or char in _SPACES


def _escaped(char: str) -> str:
    number = ord(char)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
