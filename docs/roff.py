"""Roff, the markup of manual pages, of what stands in help texts and in our Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

_ESCAPES = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)
_WIDTH = 80  # columns of the source


def entries(title: str, terms: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A section, or with an empty title a part of one, of terms and what they mean."""
    lines = [f".TP\n{term}\n{filled(text)}" for term, text in terms]
    if lines and title:
        yield f".SH {title}"
    yield from lines


def inline(markdown: str) -> str:
    """What is in backticks becomes bold; of a link, its text is left."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", markdown)
    parts = enumerate(text.split("`"))
    return "".join(bold(part) if index % 2 else plain(part) for index, part in parts)


def bold(text: str) -> str:
    return rf"\fB{plain(text)}\fR"


def italic(text: str) -> str:
    return rf"\fI{plain(text)}\fR"


def plain(text: str) -> str:
    """The text itself, in ASCII, with hyphens that can be copied."""
    escaped = text.translate(_ESCAPES)
    return re.sub(r"[^\x00-\x7f]", lambda char: rf"\[u{ord(char[0]):04X}]", escaped)


def filled(text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(line, lines))


def line(text: str) -> str:
    """A line of text, even if it begins like a request."""
    return rf"\&{text}" if text.startswith((".", "'")) else text
