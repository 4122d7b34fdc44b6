"""Where a result goes: stdout, a file, or a directory with a file for each zone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO, TypeAlias

from dkimctl.cli.output.streams import KEPT, PLAIN_TERMINALS, Reporter, StdoutWriter
from dkimctl.errors import OutputError
from dkimctl.render.renderer import TableLayout
from dkimctl.render.table import columns_of
from dkimctl.system.files import atomic_writer

_STYLE = r"\x1b\[[0-9;]*m"
# Quit if it fits on one screen, show colours, and leave the text on the screen.
_LESS = "FRX"


def open_writer(
    output: Path | None,
    *,
    must_arrive: bool = False,
    in_background: bool = False,
    is_paged: bool = False,
    mode: int | None = None,
) -> TextWriter:
    """A writer to the file `output`, or to stdout (see StdoutWriter for its options).

    Its `write` takes the text piece by piece, and raises nothing; `close` raises OutputError where
    any of it could not be written; `abort` leaves a file as it was. `mode` has the permissions of
    the file; None: see `atomic_writer`. What `is_paged` goes through the user's pager if stdout is
    a terminal.
    """
    if output is None:
        if is_paged and (pager := _find_pager()):
            return PagedWriter(pager)
        return StdoutWriter(must_arrive=must_arrive, in_background=in_background)
    return _FileWriter(output, mode)


def write_chunks(
    chunks: Iterable[str], output: Path | None, *, must_arrive: bool = False, is_paged: bool = False
) -> None:
    """Write a result to a file, or to stdout: see `open_writer`. Raises OutputError."""
    writer = open_writer(output, must_arrive=must_arrive, is_paged=is_paged)
    try:
        for text in chunks:
            writer.write(text)
    except BaseException:
        writer.abort()
        raise
    writer.close()


def require_writable(output: Path | None) -> None:
    """Raise OutputError unless a file could be written at `output`; None: stdout."""
    # What is there and no file, such as /dev/stdout, is written as it is.
    if output is None or (output.exists() and not output.is_file()):
        return
    if not (output.parent.is_dir() and os.access(output.parent, os.W_OK)):
        raise OutputError(
            f"cannot write {output}: its directory does not exist or is not writable",
            hint="name another file with --output",
        )


class _FileWriter:
    """Puts the text into the file at `path`, whole or not at all."""

    def __init__(self, path: Path, mode: int | None) -> None:
        self._path = path
        self._failure: OSError | None = None
        self._open = ExitStack()
        self._file: TextIO | None = None
        try:
            self._file = self._open.enter_context(atomic_writer(path, mode=mode))
        except OSError as error:
            self._failure = error

    def write(self, text: str) -> None:
        if self._file is not None and self._failure is None:
            try:
                self._file.write(text)
            except OSError as error:
                self._failure = error

    def close(self) -> None:
        if self._failure is not None:
            self.abort()
        try:
            self._open.close()
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is not None:
            raise OutputError(
                f"cannot write {self._path}: {self._failure.strerror or self._failure}",
                hint=f"check that its directory exists and has space; {KEPT}",
            )

    def abort(self) -> None:
        with suppress(_Abandoned, OSError), self._open:
            raise _Abandoned


class _Abandoned(Exception):
    """Thrown into `atomic_writer`, which then keeps the file as it was."""


def table_layout(reporter: Reporter, output: Path | None) -> TableLayout:
    """The width, colour and encoding of a table in the file `output`, or on stdout."""
    return TableLayout(
        width=shutil.get_terminal_size((120, 24)).columns,
        colour=output is None and reporter.shows_colour(sys.stdout),
        encoding=sys.stdout.encoding if output is None else "utf-8",
    )


class PagedWriter:
    """Keeps a result, and shows it when it is complete: through `pager` if it is long."""

    def __init__(self, pager: str) -> None:
        self._pager = pager
        self._chunks: list[str] = []

    def write(self, text: str) -> None:
        self._chunks.append(text)

    def close(self) -> None:
        text = "".join(self._chunks)
        columns, lines = shutil.get_terminal_size()
        rows = [columns_of(line) for line in re.sub(_STYLE, "", text).splitlines()]
        # One line of the terminal is for the prompt.
        if sum(max(-(-row // columns), 1) for row in rows) >= lines:
            from rich.pager import SystemPager

            # Options of the user for less come last.
            less = f"-R {os.environ['LESS']}" if "LESS" in os.environ else _LESS
            # pydoc, which rich calls, takes MANPAGER first, and sets LESS itself from 3.13 on.
            by_shell = "" if os.name == "nt" else f"LESS={shlex.quote(less)}; export LESS; "
            os.environ.update(MANPAGER=by_shell + self._pager, LESS=less)
            # Ctrl-C is for the pager alone: less stops searching, more ends. A handler, since the
            # pager would inherit that a signal is ignored.
            previous = signal.signal(signal.SIGINT, lambda *_: None)
            try:
                SystemPager().show(text)
            finally:
                signal.signal(signal.SIGINT, previous)
        else:
            writer = StdoutWriter()
            writer.write(text)
            writer.close()

    def abort(self) -> None:
        self._chunks.clear()


TextWriter: TypeAlias = StdoutWriter | PagedWriter | _FileWriter


def _find_pager() -> str | None:
    """The command of the user's pager; None: there is none, or no terminal to show it."""
    terminal = os.environ.get("TERM") or "dumb"
    is_plain = terminal in PLAIN_TERMINALS and os.name != "nt"
    if is_plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    pager = os.environ.get("PAGER")
    if pager is None:
        return None if os.name == "nt" else next(filter(shutil.which, ("less", "more")), None)
    program = (pager.split() or ["cat"])[0]
    is_missing = re.fullmatch(r"[\w./+-]+", program) and not shutil.which(program)
    return None if is_missing or pager.strip() in ("", "cat") else pager
