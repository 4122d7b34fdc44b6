"""Long tables on a terminal go through a pager, as git's output does."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from dkimctl.cli.output.colour import PLAIN_TERMINALS
from dkimctl.cli.output.streams import StdoutWriter

_NOT_STARTED = (126, 127)  # exit codes of a shell that cannot run a command
_NO_PAGER_ON = (None, "", *PLAIN_TERMINALS)  # values of TERM
_PLAIN_WORD = re.compile(r"[\w./+-]+")  # the name of a program, and no syntax of a shell
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
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
        if self._is_long() and _shown_by_pager(self._pager, self._chunks):
            return
        writer = StdoutWriter()
        for text in self._chunks:
            writer.write(text)
        writer.close()

    def abort(self) -> None:
        self._chunks.clear()

    def _is_long(self) -> bool:
        columns, lines = shutil.get_terminal_size()
        height = 0
        for chunk in self._chunks:
            height += _height(chunk, columns)
            if height >= lines:  # the last line is for the prompt
                return True
        return False


def find_pager(environ: Mapping[str, str]) -> str | None:
    """The command of the user's pager; None: there is none, or no terminal to show it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    is_windows = os.name == "nt"
    if not is_windows and environ.get("TERM") in _NO_PAGER_ON:
        return None
    pager = environ.get("PAGER")
    if pager is None:
        return None if is_windows else next(filter(shutil.which, ("less", "more")), None)
    first, _, rest = pager.strip().partition(" ")
    if not first or (first == "cat" and not rest):
        return None
    return pager if shutil.which(first) or not _PLAIN_WORD.fullmatch(first) else None


def pager_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a pager: less shows colours, whatever other options it has."""
    # Options of the user come last, and win.
    less = f"-R {environ['LESS']}" if "LESS" in environ else _LESS
    return {**environ, "LESS": less}


def _shown_by_pager(pager: str, chunks: list[str]) -> bool:
    """Whether the pager could be started. A reader that leaves early is not an error."""
    with _not_interrupted():
        try:
            process = subprocess.Popen(  # noqa: S602 - the user's own command, as git runs it
                pager,
                shell=True,
                stdin=subprocess.PIPE,
                env=pager_environment(os.environ),
            )
        except OSError:
            return False
        try:
            with suppress(OSError):
                _feed(process.stdin, chunks)
            return process.wait() not in _NOT_STARTED
        except BaseException:  # such as SIGTERM: do not leave it with the shell's terminal
            process.terminate()
            process.wait()
            raise


def _feed(stdin: IO[bytes] | None, chunks: list[str]) -> None:
    encoding, errors = sys.stdout.encoding, sys.stdout.errors or "strict"
    if stdin is not None:
        with stdin:
            for text in chunks:
                stdin.write(text.encode(encoding, errors))


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Ctrl-C is for the pager alone, which gets it as well: less stops searching, more ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A handler, since a child would inherit that a signal is ignored.
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        if previous is not None:
            signal.signal(signal.SIGINT, previous)


def _height(text: str, columns: int) -> int:
    """The lines of a terminal that `text` takes."""
    from dkimctl.render.table import columns_of

    lines = _STYLE.sub("", text).split("\n")
    last = lines.pop()
    rows = sum(max(-(-columns_of(line) // columns), 1) for line in lines)
    return rows + -(-columns_of(last) // columns)
