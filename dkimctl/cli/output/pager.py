"""Long tables on a terminal go through a pager, as git's output does."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping

from dkimctl.cli.output.streams import PLAIN_TERMINALS, StdoutWriter
from dkimctl.render.table import columns_of

_STYLE = r"\x1b\[[0-9;]*m"
# Quit if it fits on one screen, show colours, and leave the text on the screen.
_LESS = "FRX"


class PagedWriter:
    """Keeps a result, and shows it when it is complete: through `pager` if it is long."""

    def __init__(self, pager: str) -> None:
        self._pager = pager
        self._chunks: list[str] = []

    def write(self, text: str) -> None:
        self._chunks.append(text)

    def close(self) -> None:
        text = "".join(self._chunks)
        if self._is_long(text):
            from rich.pager import SystemPager

            # pydoc, which rich calls, takes MANPAGER first. Options of the user for less come last.
            less = f"-R {os.environ['LESS']}" if "LESS" in os.environ else _LESS
            os.environ.update(MANPAGER=self._pager, LESS=less)
            SystemPager().show(text)
        else:
            writer = StdoutWriter()
            writer.write(text)
            writer.close()

    def abort(self) -> None:
        self._chunks.clear()

    def _is_long(self, text: str) -> bool:
        """Whether it takes more lines than the terminal has, one of which is for the prompt."""
        columns, lines = shutil.get_terminal_size()
        rows = [columns_of(line) for line in re.sub(_STYLE, "", text).splitlines()]
        return sum(max(-(-row // columns), 1) for row in rows) >= lines


def find_pager(environ: Mapping[str, str]) -> str | None:
    """The command of the user's pager; None: there is none, or no terminal to show it."""
    terminal = environ.get("TERM") or "dumb"
    is_plain = terminal in PLAIN_TERMINALS and os.name != "nt"
    if is_plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    pager = environ.get("PAGER")
    if pager is None:
        return None if os.name == "nt" else next(filter(shutil.which, ("less", "more")), None)
    program = (pager.split() or ["cat"])[0]
    is_missing = re.fullmatch(r"[\w./+-]+", program) and not shutil.which(program)
    return None if is_missing or pager.strip() in ("", "cat") else pager
