"""Text that is safe to print on a terminal."""

from __future__ import annotations


def is_harmless(text: str) -> bool:
    """Whether it is one line without control sequences or invisible characters."""
    return all(char.isprintable() or char in "\u00a0\u3000" for char in text)
