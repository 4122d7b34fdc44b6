"""Show results: on stdout in a format, on stderr what needs attention, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from dkimctl.cli.output.attention import AttentionWarnings
from dkimctl.cli.output.destination import TextWriter, open_writer, table_layout
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.output.summaries import Doing, summary
from dkimctl.cli.output.zone_files import write_zone_files
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import Outcome, Result
from dkimctl.render.renderer import (
    DEFAULT_LAYOUT,
    Format,
    PerZoneRenderer,
    Renderer,
    TableLayout,
)
from dkimctl.render.results import open_results
from dkimctl.text.grouping import MAX_ALIKE

LONG_TABLE = 200  # rows; a longer table on a terminal shows only those that need attention

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

    Width and colour of the `layout` are those of stdout. Only a table `is_paged`. `reporter` is
    told which files were written, if there is one for each zone. The rest is as for `open_writer`.
    `close` raises OutputError; leaving the block with an error keeps a file as it was.
    """

    def __init__(
        self,
        output_options: OutputOptions,
        reporter: Reporter,
        *,
        layout: TableLayout = DEFAULT_LAYOUT,
        is_paged: bool = False,
        must_arrive: bool = False,
        in_background: bool = False,
    ) -> None:
        self._options = output_options
        self._is_paged = is_paged and output_options.fmt is Format.TABLE
        self._reporter = reporter
        self._must_arrive = must_arrive
        self._in_background = in_background
        self._writer: TextWriter | None = None
        look = table_layout(reporter, output_options.output)
        renderer = open_results(
            output_options.fmt,
            ttl=output_options.ttl,
            origin=output_options.origin,
            zones=output_options.zones,
            per_zone=output_options.is_per_zone,
            provider=output_options.provider,
            layout=layout._replace(width=look.width, colour=look.colour, wide=output_options.wide),
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
            write_zone_files(self._per_zone, self._options, self._reporter)
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
            is_paged=self._is_paged,
        )
        self._writer.write(text)
        return self._writer


class ResultSink:
    """Shows results, emitted one by one, and reports what needs attention.

    `doing` is what the command does. `expected` is how many results there will be: of more than
    200 on a terminal only those that need attention are shown, unless the format was named.
    `shown_by` says what shows all. With `in_background`, `emit` never waits for the reader of
    stdout.
    """

    def __init__(
        self,
        output_options: OutputOptions,
        reporter: Reporter,
        doing: Doing,
        *,
        expected: int = 0,
        shown_by: str = "--format table",
        in_background: bool = False,
    ) -> None:
        is_cut = output_options.is_default and not reporter.verbose
        is_long = output_options.is_on_terminal and expected > LONG_TABLE
        layout = TableLayout(
            only_attention=is_cut and is_long,
            shown_by=shown_by,
            most_alike=MAX_ALIKE if is_cut else None,
            is_plan=doing is Doing.PLANNING,
        )
        self._writer = ResultWriter(
            output_options, reporter, layout=layout, is_paged=True, in_background=in_background
        )
        self._reporter = reporter
        self._doing = doing
        self._counts: Counter[Outcome] = Counter()
        # A table shows the reasons itself.
        self._warnings = None if output_options.fmt is Format.TABLE else AttentionWarnings(reporter)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._writer.__exit__(kind)

    def emit(self, result: Result) -> None:
        if self._warnings is not None:
            self._warnings.add(result)
        self._counts[result.outcome] += 1
        self._writer.add(result)

    def close(self) -> Shown:
        """Write the rest, the warnings and the summary."""
        failure = None
        try:
            self._writer.close()
        except OutputError as error:
            failure = error
        if self._warnings is not None:
            self._warnings.close()
        self._reporter.summarize(summary(self._counts, self._doing), self._counts)
        if failure is not None:
            self._reporter.error(failure)
        return Shown(self._counts, failure)


def show(
    results: Iterable[Result],
    output_options: OutputOptions,
    reporter: Reporter,
    doing: Doing = Doing.SHOWING,
    *,
    expected: int = 0,
) -> Shown:
    """Show results that are known already; the options are as for ResultSink."""
    with ResultSink(output_options, reporter, doing, expected=expected) as sink:
        for result in results:
            sink.emit(result)
        return sink.close()


def write_results(
    results: Iterable[Result],
    output_options: OutputOptions,
    reporter: Reporter,
    *,
    is_paged: bool = False,
    must_arrive: bool = False,
) -> None:
    """Write results and nothing else. Raises OutputError."""
    with ResultWriter(
        output_options, reporter, is_paged=is_paged, must_arrive=must_arrive
    ) as writer:
        for result in results:
            writer.add(result)
        writer.close()


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
