"""The command line up to the cursor, as the shells write it."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<redirection> \d*(?:<>|<+|>>|>[|&]?)|&>>? )
    | (?P<separator> [|&;]+ )
    | (?P<word> (?:[^\s<>|&;"'\\] | \\.? | '[^']*'? | "(?:[^"\\]|\\.?)*"? )+ )""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""\\(?P<char>.?) | '(?P<single>[^']*)'? | "(?P<double>(?:[^"\\]|\\.?)*)"?""",
                     re.VERBOSE | re.DOTALL)  # fmt: skip
_ASSIGNMENT = re.compile(r"\w+=")


class Line(NamedTuple):
    """A command line, without the program."""

    words: list[str]  # those before the cursor, without quotes and redirections
    current: str  # the word at the cursor, without quotes
    typed: str  # the same as it is typed
    redirects: bool  # whether that is the file of a redirection


def split_line(text: str) -> Line:
    """Split the command line that ends at the cursor. Nothing in it is expanded but `~`."""
    words: list[str] = []
    typed, redirects = "", False
    for match in _TOKEN.finditer(text):
        redirected, redirects = redirects, match.lastgroup == "redirection"
        if match.lastgroup == "separator":
            words.clear()
        elif match.lastgroup == "word" and match.end() == len(text):
            typed, redirects = match[0], redirected
        elif match.lastgroup == "word" and not (redirected or _is_assignment(words, match[0])):
            words.append(_unquote(match[0]))
    return Line(words[1:], _unquote(typed), typed, redirects)


def _is_assignment(words: list[str], word: str) -> bool:
    return not words and bool(_ASSIGNMENT.match(word))


def _unquote(word: str) -> str:
    text = _QUOTED.sub(_unquoted, word)
    return os.path.expanduser(text) if word.startswith("~") else text  # noqa: PTH111 - keeps `//`


def _unquoted(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r'\\(["\\$`])', r"\1", match["double"])
    return match["single"] if match["single"] is not None else match["char"]
