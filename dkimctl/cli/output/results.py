"""Show results: on stdout in a format, on stderr what needs attention, and the exit code."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from dkimctl.cli.output.destination import TextWriter, open_writer, write_files
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import Outcome, Result, named
from dkimctl.render.formats import open_renderer
from dkimctl.render.renderer import Format, PerZoneRenderer, Renderer

LONG_TABLE = 200  # rows; a longer table on a terminal shows only those that need attention

# In the order of the summary.
_WORDS = {
    Outcome.CREATED: "created",
    Outcome.EXISTS: "already there",
    Outcome.PENDING: "to create",
    Outcome.RETIRED: "retired",
    Outcome.DIFFERS: "differs",
    Outcome.TAKEN: "taken",
    Outcome.INVALID: "invalid",
    Outcome.UNUSABLE: "unusable",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
}
_EXIT_CODES = {
    Outcome.CREATED: ExitCode.OK,
    Outcome.EXISTS: ExitCode.OK,
    Outcome.PENDING: ExitCode.OK,
    Outcome.RETIRED: ExitCode.OK,
    Outcome.DIFFERS: ExitCode.NO,
    Outcome.TAKEN: ExitCode.NO,
    Outcome.INVALID: ExitCode.NO,
    Outcome.UNUSABLE: ExitCode.NO,
    Outcome.FAILED: ExitCode.SERVICE,
    Outcome.UNKNOWN: ExitCode.SERVICE,
}
_HINTS = {
    Outcome.DIFFERS: "change the entry, or register another selector; it is not sent again",
    Outcome.TAKEN: "choose another selector, or ask the service's operator who owns it",
    Outcome.INVALID: "fix the entry and run the same command again",
    Outcome.UNUSABLE: "do not publish it; register another selector, and report it to the "
    "service's operator",
    Outcome.FAILED: "run the same command again later",
    Outcome.UNKNOWN: "if the entry has a selector, run the same command again; if not, ask the "
    "service's operator whether it is registered: if so, write its selector into the entry; if "
    "not, add --retry-unknown",
}


class Shown(NamedTuple):
    """How many results of each outcome there were, and why they could not be written, if so."""

    counts: Counter[Outcome]
    failure: OutputError | None

    @property
    def status(self) -> ExitCode:
        """The exit code of the worst outcome."""
        codes = [_EXIT_CODES[outcome] for outcome in self.counts]
        return worst([*codes, *([self.failure.exit_code] if self.failure else [])])


class ResultWriter:
    """Writes results, added one by one, as `output_options` say.

    `expected` is how many there will be, where that is known. The rest is as for `open_writer`.
    `close` raises OutputError; leaving the block with an error keeps a file as it was.
    """

    def __init__(
        self,
        output_options: OutputOptions,
        reporter: Reporter,
        *,
        expected: int = 0,
        must_arrive: bool = False,
        in_background: bool = False,
    ) -> None:
        self._options = output_options
        self._must_arrive = must_arrive
        self._in_background = in_background
        self._writer: TextWriter | None = None
        renderer = open_renderer(
            output_options.fmt,
            ttl=output_options.ttl,
            origin=output_options.origin,
            zones=output_options.zones,
            provider=output_options.provider,
            width=shutil.get_terminal_size((120, 24)).columns,
            colour=output_options.output is None and reporter.shows_colour(sys.stdout),
            only_attention=output_options.is_on_terminal and expected > LONG_TABLE,
        )
        self._per_zone = renderer if isinstance(renderer, PerZoneRenderer) else None
        self._renderer = renderer if isinstance(renderer, Renderer) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._writer is not None:
            self._writer.abort()

    def add(self, result: Result) -> None:
        if self._renderer is not None:
            writer = self._writer or self._begin(self._renderer.begin())
            writer.write(self._renderer.add(result))
        elif self._per_zone is not None:
            self._per_zone.add(result)

    def close(self) -> None:
        if self._per_zone is not None:
            options = self._options
            write_files(self._per_zone.files(), options.output, options.output_dir)
        elif self._renderer is not None:
            writer = self._writer or self._begin(self._renderer.begin())
            for text in self._renderer.end():
                writer.write(text)
            writer.close()

    def _begin(self, text: str) -> TextWriter:
        """Open the destination no sooner than there is something to write."""
        self._writer = open_writer(
            self._options.output,
            must_arrive=self._must_arrive,
            in_background=self._in_background,
        )
        self._writer.write(text)
        return self._writer


class ResultSink:
    """Shows results, emitted one by one, and reports what needs attention.

    `expected` is how many there will be. With `in_background`, `emit` never waits for the reader
    of stdout.
    """

    def __init__(
        self,
        output_options: OutputOptions,
        reporter: Reporter,
        *,
        expected: int,
        in_background: bool = False,
    ) -> None:
        self._writer = ResultWriter(
            output_options, reporter, expected=expected, in_background=in_background
        )
        self._reporter = reporter
        self._warns = output_options.fmt is not Format.TABLE  # a table shows the reasons itself
        self._counts: Counter[Outcome] = Counter()

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._writer.__exit__(kind)

    def emit(self, result: Result) -> None:
        outcome = result.outcome
        if self._warns and outcome in _HINTS:
            _warn(result, self._reporter, with_hint=not self._counts[outcome])
        self._counts[outcome] += 1
        self._writer.add(result)

    def close(self) -> Shown:
        """Write the rest and the summary."""
        failure = None
        try:
            self._writer.close()
        except OutputError as error:
            failure = error
        self._reporter.summarize(summary(self._counts), self._counts)
        if failure is not None:
            self._reporter.error(failure)
        return Shown(self._counts, failure)


def show(results: Iterable[Result], output_options: OutputOptions, reporter: Reporter) -> Shown:
    """Show results that are known already."""
    expected = 0
    if output_options.fmt is Format.TABLE and output_options.is_on_terminal:
        results = list(results)
        expected = len(results)
    with ResultSink(output_options, reporter, expected=expected) as sink:
        for result in results:
            sink.emit(result)
        return sink.close()


def write_results(
    results: Iterable[Result],
    output_options: OutputOptions,
    reporter: Reporter,
    *,
    must_arrive: bool = False,
) -> None:
    """Write results and nothing else. Raises OutputError."""
    with ResultWriter(output_options, reporter, must_arrive=must_arrive) as writer:
        for result in results:
            writer.add(result)
        writer.close()


def summary(counts: Mapping[Outcome, int]) -> str:
    """How many domains came to what, such as "created 3, already there 2"."""
    parts = [f"{word} {counts[outcome]}" for outcome, word in _WORDS.items() if counts.get(outcome)]
    return ", ".join(parts) or "nothing to do"


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The one that stands for all: 130, then 3, 4, 2, 1, 0."""
    return _first(codes, ExitCode.SERVICE, ExitCode.USAGE, ExitCode.NO)


def worst_check(codes: Iterable[ExitCode]) -> ExitCode:
    """The one that stands for all checks: 130, then 3, 2, 1, 4, 0.

    "No" wins over "no answer", or a script that retries on 4 might do so forever.
    """
    return _first(codes, ExitCode.USAGE, ExitCode.NO, ExitCode.SERVICE)


def _first(codes: Iterable[ExitCode], *order: ExitCode) -> ExitCode:
    given = set(codes)
    always = (ExitCode.INTERRUPTED, ExitCode.AUTH)
    return next((code for code in (*always, *order) if code in given), ExitCode.OK)


def _warn(result: Result, reporter: Reporter, *, with_hint: bool) -> None:
    text = f"{named(result.registration)}: {result.outcome}: {result.reason}"
    reporter.warn(text, hint=_HINTS[result.outcome] if with_hint else "", code=result.outcome)
