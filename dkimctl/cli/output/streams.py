"""The two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from dkimctl.errors import DkimctlError, InputError, OutputError
from dkimctl.models.registration import Outcome
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.cli.output.background_writer import BackgroundWriter
    from dkimctl.publication.verdicts import Verdict

    Counts = Mapping[Outcome, int] | Mapping[Verdict, int]

_PIECE = 64  # chunks, mostly of a record each: a write for each would take as long as they
_IN_LEDGER = "what was registered is in the ledger: dkimctl show-dns"
_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}


class Reporter:
    """Tells people what happened, on stderr.

    With `as_json`, what was told comes out as one JSON object at the end instead, so that
    stderr can be parsed. `quiet` drops notes; warnings and errors stay.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.quiet = quiet
        self._as_json = as_json
        self._told: dict[str, list[dict[str, str]]] = {"error": [], "warning": []}
        self._summary: Counts | None = None

    def note(self, text: str) -> None:
        """Something good to know, such as a summary."""
        if not self.quiet and not self._as_json:
            _say(printable(text))

    def summarize(self, text: str, counts: Counts) -> None:
        """What a run came to: in words, and as numbers."""
        self.note(f"dkimctl: {text}")
        if not self.quiet:
            self._summary = counts

    def warn(self, text: str, *, hint: str = "", code: str = "warning") -> None:
        """Something that does not stop the command."""
        self._tell("warning", text, hint, code)

    def error(self, error: DkimctlError) -> None:
        """What stops the command, or makes its answer a no."""
        if isinstance(error, InputError):
            for problem in error.problems:
                self._tell("error", str(problem), problem.hint, error.code)
        else:
            self._tell("error", error.message, error.hint, error.code)

    def close(self) -> None:
        """Write what waits for the end."""
        if self._as_json and (self._summary is not None or any(self._told.values())):
            import json

            document: dict[str, object] = {"errors": self._told["error"]}
            if self._told["warning"]:
                document["warnings"] = self._told["warning"]
            if self._summary is not None:
                document["summary"] = self._summary
            _say(json.dumps(document))

    def _tell(self, kind: str, text: str, hint: str, code: str) -> None:
        if self._as_json:
            self._told[kind].append({"code": code, "message": text, "hint": hint})
            return
        style = _STYLES[kind] if shows_colour(sys.stderr) else ""
        _say(f"dkimctl: {style}{kind}:{style and chr(27) + '[0m'} {printable(text)}")
        if hint:
            _say(f"hint: {printable(hint)}")


def log(text: str) -> None:
    """What --verbose asks for; from any thread."""
    _say(f"dkimctl: {printable(text)}")


def show_lines(text: str) -> None:
    """Lines for people, such as a traceback, in which words of others may stand."""
    for line in text.splitlines():
        _say(printable(line))


def shows_colour(stream: TextIO) -> bool:
    """Whether colour is wanted there: a terminal, and no NO_COLOR (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def write(chunks: Iterable[str], *, must_arrive: bool = False, hint: str = "") -> None:
    """Write a result to stdout.

    Raises OutputError where it cannot be written. A reader that went away (`| head`) is no error,
    unless all of it `must_arrive`.
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
        self, *, must_arrive: bool = False, in_background: bool = False, hint: str = ""
    ) -> None:
        if must_arrive and sys.stdout.name == os.devnull:
            raise OutputError(
                "stdout is closed, and the result would be lost", hint=hint or "use --output"
            )
        self._must_arrive = must_arrive
        self._hint = hint or _IN_LEDGER
        self._gathered: list[str] = []
        self._most_gathered = 1 if sys.stdout.isatty() else _PIECE
        self._failure: OSError | None = None
        self._background: BackgroundWriter | None = None
        if in_background:
            from dkimctl.cli.output.background_writer import BackgroundWriter

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
            self._failure = _write_one(text)


def write_bytes(data: bytes) -> None:
    """Write data to stdout as it came, or so that a terminal only shows it.

    Raises OutputError like `write`.
    """
    if sys.stdout.isatty():
        write([_displayed(data)])
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        _require_written(error)


def open_missing_streams() -> None:
    """Give every standard stream that was closed a place that leads nowhere.

    Otherwise a file opened later would take its number, and be written to by mistake.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _displayed(data: bytes) -> str:
    """Lines for a terminal, with all that it would act on escaped."""
    text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").expandtabs()
    lines = text.removesuffix("\n").split("\n") if text else []
    return "".join(f"{printable(line)}\n" for line in lines)


def _write_one(text: str) -> OSError | None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _require_written(
    failure: OSError | None, hint: str = _IN_LEDGER, *, must_arrive: bool = False
) -> None:
    if failure is None:
        return
    _abandon(sys.stdout)
    if must_arrive or not isinstance(failure, BrokenPipeError):
        raise OutputError(
            f"the result could not be written: {failure.strerror}",
            hint=hint,
        )


def _say(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:  # nobody is left to be told
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """Point a stream nowhere, so that the interpreter's last flush does not fail as well."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
