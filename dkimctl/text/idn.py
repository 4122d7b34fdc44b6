"""Domain names as people read them: U-labels in place of A-labels (RFC 5890 2.3.2.1)."""

from __future__ import annotations

import unicodedata

_RIGHT_TO_LEFT = ("R", "AL")  # bidirectional classes, of Hebrew and Arabic letters


def readable(name: str, encoding: str = "utf-8") -> str:
    """`name` with its labels in their own script, such as `例え.jp` for `xn--r8jz45g.jp`.

    A label stays as it is if it is not a valid A-label, if `encoding` does not have its characters,
    or if a terminal would show it from right to left and so reorder what stands beside it.
    """
    if "xn--" not in name.lower():
        return name
    return ".".join(_readable_label(label, encoding) for label in name.split("."))


def _readable_label(label: str, encoding: str) -> str:
    if not label.lower().startswith("xn--"):
        return label
    import idna

    try:
        text = idna.ulabel(label)
        is_same = idna.alabel(text).decode() == label.lower()
        text.encode(encoding)
    except UnicodeError:  # of which idna's own errors are a kind
        return label
    is_shown = text.isprintable() and not any(map(_is_right_to_left, text))
    return text if is_same and is_shown else label


def _is_right_to_left(char: str) -> bool:
    return unicodedata.bidirectional(char) in _RIGHT_TO_LEFT
