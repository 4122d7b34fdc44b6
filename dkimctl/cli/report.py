"""The two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import queue
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TextIO

from dkimctl.cli.next_steps import CommandOptions, complete_commands
from dkimctl.errors import DkimctlError, InputError, OutputError, Problem
from dkimctl.text import MAX_ALIKE, Grouping, and_more, printable, without_values
from dkimctl.threads import start_daemon

# Of TERM, where escape sequences would be shown.
PLAIN_TERMINALS = ("dumb", "unknown")
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")  # force-color.org, bixense.com/clicolors
_PIECE = 64  # chunks in a write: a write for each would take as long as making them
# Of a result that is lost, whichever command it is of.
KEPT = "what was done is kept; `dkimctl show-dns` shows what is registered"
_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}


class Color(StrEnum):
    """The values of --color."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Reporter:
    """Reports notes, warnings and errors on stderr."""

    def __init__(
        self,
        *,
        as_json: bool = False,  # `close` writes all but notes as one JSON object instead
        quiet: bool = False,  # drops notes and the summary
        verbose: bool = False,  # cuts no list
        color: Color = Color.AUTO,
    ) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._color = color
        self.command_options = CommandOptions()
        self._as_json = as_json
        self._reports: dict[str, list[dict[str, str]]] = {"error": [], "warning": []}
        self._summary: dict[str, int] | None = None

    @property
    def lists_all(self) -> bool:
        """Whether to list all of many that are alike: asked to, or for a program to read."""
        return self.verbose or self._as_json

    def complete(self, text: str) -> str:
        """`text`, which is ours, with the options of the profile in each command in backticks."""
        return complete_commands(text, self.command_options)

    def note(self, text: str) -> None:
        """Report something good to know, such as the next command."""
        if not self.quiet and not self._as_json:
            _write_line(printable(self.complete(text)))

    def summarize(self, text: str, counts: Mapping[Any, int]) -> None:
        """Report the result of a run, in words and as numbers, by words, which are added."""
        self.note(f"dkimctl: {text}")
        if not self.quiet:
            self._summary = {**(self._summary or {}), **dict(counts.items())}

    def warn(self, text: str, *, hint: str = "", code: str = "warning") -> None:
        """Report what does not stop the command."""
        self._report("warning", text, hint, code)

    def error(self, error: DkimctlError) -> None:
        """Report what stops the command, or makes its answer a no."""
        if isinstance(error, InputError):
            for text, hint in problem_lines(error.problems, lists_all=self.lists_all):
                self._report("error", text, hint, error.code)
        else:
            self._report("error", error.message, error.hint, error.code)

    def shows_colour(self, stream: TextIO) -> bool:
        """Whether to colour what is written to `stream`: a terminal, if nothing says otherwise."""
        if self._color is not Color.AUTO:
            return self._color is Color.ALWAYS
        if os.environ.get("NO_COLOR"):  # no-color.org
            return False
        if any(os.environ.get(name, "0") not in ("", "0") for name in _FORCING):
            return True
        return stream.isatty() and os.environ.get("TERM") not in PLAIN_TERMINALS

    def close(self) -> None:
        """Write the JSON object."""
        if self._as_json and (self._summary is not None or any(self._reports.values())):
            import json

            document: dict[str, object] = {"errors": self._reports["error"]}
            if self._reports["warning"]:
                document["warnings"] = self._reports["warning"]
            if self._summary is not None:
                document["summary"] = self._summary
            _write_line(json.dumps(document))

    def _report(self, kind: str, text: str, hint: str, code: str) -> None:
        hint = self.complete(hint)
        if self._as_json:
            self._reports[kind].append({"code": code, "message": text, "hint": hint})
            return
        style = _STYLES[kind] if self.shows_colour(sys.stderr) else ""
        _write_line(f"dkimctl: {style}{kind}:{style and chr(27) + '[0m'} {printable(text)}")
        if hint:
            _write_line(f"hint: {printable(hint)}")


def problem_lines(problems: Sequence[Problem], *, lists_all: bool) -> Iterator[tuple[str, str]]:
    """What to report of a file, each problem with its hint, in the order of the file.

    Of more than 20 problems that are alike, the first are listed and the rest counted, with one
    hint for all; unless it `lists_all`.
    """
    kinds = [(without_values(problem.message), problem.hint) for problem in problems]
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem, kind in zip(problems, kinds, strict=True):
        alike.setdefault(kind, []).append(problem)
    listed = dict.fromkeys(alike, 0)
    for problem, kind in zip(problems, kinds, strict=True):
        listed[kind] += 1
        rest = [] if lists_all else alike[kind][MAX_ALIKE:]
        if not rest:
            yield str(problem), problem.hint
        elif listed[kind] <= MAX_ALIKE:
            yield str(problem), ""
            if listed[kind] == MAX_ALIKE:
                first, last = rest[0].line, rest[-1].line
                where = f"line {first}" if first == last else f"lines {first} to {last}"
                more = f"… and {len(rest):,} more like these ({where}; --verbose lists them)"
                yield f"{problem.file}: {more}", problem.hint


class AlikeWarnings:
    """Gives warnings to `reporter`: the first of each kind; `close` counts the rest.

    With --verbose or as JSON, all are shown.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._grouping = Grouping[tuple[str, str]](None if reporter.lists_all else MAX_ALIKE)

    def warn(self, text: str, *, kind: str, hint: str = "", code: str = "warning") -> None:
        """Warn, unless there were enough of this `kind`, which is a text for all of them."""
        if self._grouping.shows((kind, code)):
            self._reporter.warn(text, hint=hint, code=code)

    def close(self) -> None:
        for (kind, code), count in self._grouping.rest():
            text = f"{and_more(count, kind)} (--verbose lists all)"
            self._reporter.warn(text, code=code)


def warn_unreadable(reporter: Reporter, path: str, faults: Iterable[object]) -> None:
    """Warn about the items of a saved result that cannot be read."""
    warnings = AlikeWarnings(reporter)
    for fault in faults:
        kind = f"{path}: {without_values(str(fault))}"
        warnings.warn(f"{path}: {fault}", kind=kind, code="unreadable")
    warnings.close()


def log_requests() -> None:
    """Write a line for each request to the service, and DNS query, from now on; for --verbose."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _write_line(f"dkimctl: {printable(record.getMessage())}")

    for name in ("dkimctl.http", "dkimctl.dns"):
        logger = logging.getLogger(name)
        logger.addHandler(Handler())
        logger.setLevel(logging.INFO)


def show_lines(text: str) -> None:
    """Write lines that may hold text of others, such as a traceback."""
    for line in text.splitlines():
        _write_line(printable(line))


def write(
    chunks: Iterable[str], *, must_arrive: bool = False, hint: str = "check where it goes"
) -> None:
    """Write a result to stdout.

    Raises OutputError if it cannot be written. A reader that goes away (`| head`) is not an error,
    unless all of the result `must_arrive`.
    """
    writer = StdoutWriter(must_arrive=must_arrive, hint=hint)
    for text in chunks:
        writer.write(text)
    writer.close()


class StdoutWriter:
    """Writes a result to stdout piece by piece; `close` reports what went wrong.

    Raises OutputError at once where it `must_arrive` and stdout is closed. With `in_background`,
    `write` never waits for the reader.
    """

    def __init__(
        self, *, must_arrive: bool = False, in_background: bool = False, hint: str = KEPT
    ) -> None:
        if must_arrive and sys.stdout.name == os.devnull:
            hint = "use --output" if hint is KEPT else hint
            raise OutputError("stdout is closed, and the result would be lost", hint=hint)
        self._must_arrive = must_arrive
        self._hint = hint
        self._gathered: list[str] = []
        self._most_gathered = 1 if sys.stdout.isatty() else _PIECE
        self._failure: OSError | None = None
        self._background: BackgroundWriter | None = None
        if in_background:
            self._background = BackgroundWriter()

    def write(self, text: str) -> None:
        if text:
            self._gathered.append(text)
            if len(self._gathered) >= self._most_gathered:
                self._flush()

    def close(self) -> None:
        self._flush()
        if self._background is not None:
            self._failure = self._background.finish()
        _require_written(self._failure, self._hint, must_arrive=self._must_arrive)

    def abort(self) -> None:
        """Give up what is not written yet."""
        self._gathered.clear()

    def _flush(self) -> None:
        text = "".join(self._gathered)
        self._gathered.clear()
        if self._background is not None:
            self._background.write(text)
        elif self._failure is None:
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except OSError as error:
                self._failure = error


class BackgroundWriter:
    """Writes text to stdout in order, in a thread, so that a slow reader holds up nothing else.

    What the reader has not taken yet waits in memory; all of it, and until `finish`, where the
    system allows no thread.
    """

    def __init__(self) -> None:
        self._failure: OSError | None = None
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # The program may end while the reader stands still. So the thread writes below Python's
        # buffers, whose locks it would not give back.
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        self._thread = start_daemon(self._run, "dkimctl-output")

    def write(self, text: str) -> None:
        """Take it without waiting, encoded as stdout would: the thread could report no error."""
        if os.linesep != "\n":
            text = text.replace("\n", os.linesep)
        self._pieces.put(text.encode(sys.stdout.encoding, sys.stdout.errors or "strict"))

    def finish(self) -> OSError | None:
        """Wait until all is written; returns the first error, if any."""
        self._pieces.put(None)
        if self._thread is None:
            self._run()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)  # a wait without a timeout would not hear Ctrl-C on Windows
        return self._failure

    def _run(self) -> None:
        while (data := self._pieces.get()) is not None:
            left = memoryview(data)
            while left and self._failure is None:
                try:
                    left = left[os.write(self._descriptor, left) :]
                except BlockingIOError:  # another program has set the pipe to non-blocking
                    time.sleep(0.05)
                except OSError as error:
                    self._failure = error


def write_bytes(data: bytes) -> None:
    """Write data to stdout unchanged; on a terminal, with control characters escaped.

    Raises OutputError like `write`.
    """
    if sys.stdout.isatty():
        text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").expandtabs()
        lines = text.removesuffix("\n").split("\n") if text else []
        write(f"{printable(line)}\n" for line in lines)
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        _require_written(error)


def open_missing_streams() -> None:
    """Open the null device for every standard stream that is closed.

    Otherwise a file opened later would get its descriptor, and be written to by mistake.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _require_written(
    failure: OSError | None, hint: str = KEPT, *, must_arrive: bool = False
) -> None:
    if failure is None:
        return
    _discard(sys.stdout)
    if must_arrive or not isinstance(failure, BrokenPipeError):
        raise OutputError(f"the result could not be written: {failure.strerror}", hint=hint)


def _write_line(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:  # stderr is gone
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that the last flush at exit does not fail."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
