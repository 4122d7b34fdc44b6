"""When output is coloured."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

# Of TERM, where escape sequences would be shown.
PLAIN_TERMINALS = ("dumb", "unknown")

_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")  # force-color.org, bixense.com/clicolors


class Color(StrEnum):
    """The values of --color."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def shows_colour(choice: Color, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour what is written to `stream`: on a terminal, unless told otherwise."""
    if choice is not Color.AUTO:
        return choice is Color.ALWAYS
    if environ.get("NO_COLOR"):  # no-color.org
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in _FORCING):
        return True
    return stream.isatty() and environ.get("TERM") not in PLAIN_TERMINALS
