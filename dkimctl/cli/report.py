"""The two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import itertools
import json
import os
import queue
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, TextIO

from dkimctl.cli.next_steps import CommandOptions, complete_commands, name_sources
from dkimctl.errors import DkimctlError, InputError, OutputError, Problem
from dkimctl.formats.table import INDENT, columns_of, wrap
from dkimctl.text import MAX_ALIKE, Grouping, and_more, printable, without_values
from dkimctl.threads import start_daemon

# Of TERM, where escape sequences would be shown.
PLAIN_TERMINALS = ("dumb", "unknown")
# Of a result that is lost, whichever command it is of.
KEPT = "what was done is kept; `dkimctl show-dns` shows what is registered"
_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}
Color = StrEnum("Color", ["AUTO", "ALWAYS", "NEVER"])  # of --color


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
        self.as_json, self.quiet, self.verbose, self.color = as_json, quiet, verbose, color
        self.command_options = CommandOptions()
        self._reports: dict[str, list[dict[str, str]]] = {"error": [], "warning": []}
        self._summary: dict[str, int] | None = None

    @property
    def most_alike(self) -> int | None:
        """How many to list of those that are alike; None: all, with --verbose and for programs."""
        return None if self.verbose or self.as_json else MAX_ALIKE

    def complete(self, text: str) -> str:
        """`text`, which is ours, with the options of the profile in each command in backticks."""
        return complete_commands(text, self.command_options)

    def complete_hint(self, hint: str) -> str:
        """As `complete`, with the config file and what set a value named."""
        return self.complete(name_sources(hint, self.command_options))

    @property
    def shows_notes(self) -> bool:
        return not (self.quiet or self.as_json)

    def note(self, text: str) -> None:
        if self.shows_notes:
            _write_wrapped(printable(self.complete(text)))

    def summarize(self, text: str, counts: Mapping[Any, int]) -> None:
        """Report the result of a run, in words and as numbers, by words, which are added."""
        self.note(f"dkimctl: {text}")
        if not self.quiet:
            self._summary = {**(self._summary or {}), **counts}

    def warn(self, text: str, *, hint: str = "", code: str = "warning") -> None:
        self._report("warning", text, hint, code)

    def error(self, error: DkimctlError) -> None:
        """Report what stops the command, or makes its answer a no."""
        if isinstance(error, InputError):
            for text, hint in problem_lines(error.problems, self.most_alike):
                self._report("error", text, hint, error.code)
        else:
            self._report("error", error.message, error.hint, error.code)

    def shows_colour(self, stream: TextIO) -> bool:
        """Whether to colour what is written to `stream`: a terminal, if nothing says otherwise."""
        if self.color is not Color.AUTO:
            return self.color is Color.ALWAYS
        if os.environ.get("NO_COLOR"):  # no-color.org
            return False
        forcing = ("FORCE_COLOR", "CLICOLOR_FORCE")  # force-color.org, bixense.com/clicolors
        if any(os.environ.get(name, "0") not in ("", "0") for name in forcing):
            return True
        return stream.isatty() and os.environ.get("TERM") not in PLAIN_TERMINALS

    def close(self) -> None:
        if self.as_json and (self._summary is not None or any(self._reports.values())):
            document: dict[str, object] = {"errors": self._reports["error"]}
            if warnings := self._reports["warning"]:
                document["warnings"] = warnings
            if self._summary is not None:
                document["summary"] = self._summary
            write_line(json.dumps(document))

    def _report(self, kind: str, text: str, hint: str, code: str) -> None:
        hint = self.complete_hint(hint)
        if self.as_json:
            self._reports[kind].append({"code": code, "message": text, "hint": hint})
            return
        style = _STYLES[kind] if self.shows_colour(sys.stderr) else ""
        shown = f"{style}{kind}:{style and chr(27) + '[0m'}"
        _write_wrapped(f"dkimctl: {kind}: {printable(text)}", f"{kind}:", shown)
        if hint:
            _write_wrapped(f"hint: {printable(hint)}")


def problem_lines(problems: Sequence[Problem], most: int | None) -> Iterator[tuple[str, str]]:
    """What to report of a file, each problem with its hint, in the order of the file.

    Of more than `most` that are alike, the rest are counted, with one hint for all.
    """
    alike: dict[tuple[str, str], list[Problem]] = {}
    listed = Grouping[tuple[str, str]](most)
    kinds = [(without_values(problem.message), problem.hint) for problem in problems]
    for problem, kind in zip(problems, kinds, strict=True):
        alike.setdefault(kind, []).append(problem)
    for problem, kind in zip(problems, kinds, strict=True):
        same = alike[kind]
        if listed.shows(kind):
            yield str(problem), problem.hint if most is None or len(same) <= most else ""
        elif most is not None and problem is same[-1]:
            first, last = same[most].line, problem.line
            where = f"line {first}" if first == last else f"lines {first} to {last}"
            more = f"… and {len(same) - most:,} more like these"
            yield f"{problem.file}: {more} ({where}; --verbose lists them)", problem.hint


def warn_alike(reporter: Reporter, warnings: Iterable[tuple[str, str, str]]) -> None:
    """Give warnings, each with a text for all of its kind, and a code; many alike are counted."""
    grouping = Grouping[tuple[str, str]](reporter.most_alike)
    for text, kind, code in warnings:
        if grouping.shows((kind, code)):
            reporter.warn(text, code=code)
    for (kind, code), count in grouping.rest():
        reporter.warn(f"{and_more(count, kind)} (--verbose lists all)", code=code)


def warn_unreadable(reporter: Reporter, path: str, faults: Iterable[object]) -> None:
    """Warn about the items of a saved result that cannot be read."""
    texts = (f"{path}: {fault}" for fault in faults)
    warn_alike(reporter, ((text, without_values(text), "unreadable") for text in texts))


def log_requests() -> None:
    """Write a line for each request to the service, and DNS query, from now on; for --verbose."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write_line(f"dkimctl: {printable(record.getMessage())}")

    for name in ("dkimctl.http", "dkimctl.dns"):
        logger = logging.getLogger(name)
        logger.addHandler(Handler())
        logger.setLevel(logging.INFO)


def write(
    chunks: Iterable[str], *, must_arrive: bool = False, in_background: bool = False,
    hint: str = "check where it goes",
) -> None:  # fmt: skip
    """Write a result to stdout.

    Raises OutputError if it cannot be written. A reader that goes away (`| head`) is not an error,
    unless all of the result `must_arrive`. With `in_background` a thread writes it, in order, so
    that a slow reader holds up nothing else: what the reader has not taken yet waits in memory; all
    of it, and until the end, where the system allows no thread.
    """
    chunks = iter(chunks)
    first = next(chunks, "")  # may raise an error, which says more than that stdout is closed
    if must_arrive and sys.stdout.name == os.devnull:
        hint = "use --output" if hint is KEPT else hint
        raise OutputError("stdout is closed, and the result would be lost", hint=hint)
    pieces = _pieces(itertools.chain([first], chunks))
    if failure := _write_by_thread(pieces) if in_background else _write_pieces(pieces):
        _give_up_stdout(failure, hint, must_arrive=must_arrive)


def _pieces(chunks: Iterable[str]) -> Iterator[str]:
    """Many chunks at once: a write for each would take as long as making them."""
    texts, most = filter(None, chunks), 1 if sys.stdout.isatty() else 64
    while piece := "".join(itertools.islice(texts, most)):
        yield piece


def _write_pieces(pieces: Iterable[str]) -> OSError | None:
    """Take all pieces, and write them to stdout; returns what went wrong."""
    failure = None
    for text in pieces:
        if failure is None:
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except OSError as error:
                failure = error
    return failure


def _write_by_thread(pieces: Iterable[str]) -> OSError | None:
    """The same, by a thread, which is waited for at the end."""
    # The program may end while the reader stands still. So the thread writes below Python's
    # buffers, whose locks it would not give back.
    sys.stdout.flush()
    queued: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    failures: list[OSError] = []

    def work() -> None:
        descriptor = sys.stdout.fileno()
        while (data := queued.get()) is not None:
            left = memoryview(data)
            while left and not failures:
                try:
                    left = left[os.write(descriptor, left) :]
                except BlockingIOError:  # another program has set the pipe to non-blocking
                    time.sleep(0.05)
                except OSError as error:
                    failures.append(error)

    thread = start_daemon(work, "dkimctl-output")
    for text in pieces:
        # Encoded as stdout would: the thread could report no error.
        data = text.replace("\n", os.linesep)
        queued.put(data.encode(sys.stdout.encoding, sys.stdout.errors or "strict"))
    queued.put(None)
    if thread is None:
        work()
    while thread is not None and thread.is_alive():
        thread.join(0.5)  # a wait without a timeout would not hear Ctrl-C on Windows
    return failures[0] if failures else None


def write_bytes(data: bytes) -> None:
    """Like `write`, but data, unchanged; on a terminal, with control characters escaped."""
    if sys.stdout.isatty():
        text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").expandtabs()
        lines = text.removesuffix("\n").split("\n") if text else []
        write(f"{printable(line)}\n" for line in lines)
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        _give_up_stdout(error)


def open_missing_streams() -> None:
    """Open the null device for each closed stream: a file might be opened in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _give_up_stdout(failure: OSError, hint: str = KEPT, *, must_arrive: bool = False) -> None:
    _discard(sys.stdout)
    if must_arrive or not isinstance(failure, BrokenPipeError):
        raise OutputError(f"the result could not be written: {failure.strerror}", hint=hint)


def _write_wrapped(text: str, head: str = "", shown: str = "") -> None:
    """Write a message that begins with `head`, `shown` in its place; lines fit a terminal."""
    lines = [text]
    if sys.stderr.isatty():
        with suppress(OSError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            if 0 < width < columns_of(text):
                lines = wrap(text, width - len(INDENT), breaks_words=False)
    write_line(f"\n{INDENT}".join(lines).replace(head, shown, 1))


def write_line(line: str) -> None:
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
