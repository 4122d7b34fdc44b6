"""Text of others in Markdown: in code, on one line, so that nothing in it acts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dkimctl.text.escaping import printable


def code(text: str) -> str:
    """`text` as a code span (CommonMark 6.1) that nothing in it can end."""
    text = printable(text)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    r"""`text` as code in a cell of a table; "" for none.

    There, `\|` is a pipe even in code (GFM 4.10). After a backslash, parsers disagree on it: a
    space is put between the two.
    """
    parts = re.split(r"(?<=\\)(?=\|)", printable(text)) if text else []
    return " ".join(code(part).replace("|", r"\|") for part in parts)


def fenced(lines: Sequence[str], language: str = "", indent: str = "") -> str:
    """Lines that are printable as a code block (CommonMark 4.5) that nothing in them can end."""
    fence = "`" * max(3, max(map(_longest_run, lines)) + 1)
    return "".join(f"{indent}{line}\n" for line in (f"{fence}{language}", *lines, fence))


def _longest_run(text: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
