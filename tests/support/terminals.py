"""What a terminal shows as it is."""

from __future__ import annotations


def is_harmless(text: str) -> bool:
    """Whether it is one line, and nothing in it acts on a terminal or hides from the reader."""
    return all(char.isprintable() or char in "\u00a0\u3000" for char in text)
