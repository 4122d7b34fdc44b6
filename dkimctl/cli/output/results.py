"""Show results: on stdout in a format, on stderr what needs attention, and the exit code."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from dkimctl.cli.output.destination import write_chunks, write_files
from dkimctl.cli.output.options import OutputOptions
from dkimctl.cli.output.streams import Reporter, shows_colour
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import Outcome, Result
from dkimctl.render.formats import open_renderer
from dkimctl.render.renderer import Format, PerZoneRenderer, render_all

LONG = 200  # rows; a longer table on a terminal shows only those that need attention

# In the order of the summary.
_WORDS = {
    Outcome.CREATED: "created",
    Outcome.EXISTS: "already there",
    Outcome.PENDING: "to create",
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
    Outcome.DIFFERS: ExitCode.NO,
    Outcome.TAKEN: ExitCode.NO,
    Outcome.INVALID: ExitCode.NO,
    Outcome.UNUSABLE: ExitCode.NO,
    Outcome.FAILED: ExitCode.SERVICE,
    Outcome.UNKNOWN: ExitCode.SERVICE,
}
_HINTS = {
    Outcome.DIFFERS: "change the entry, or register another selector; it is not sent again",
    Outcome.TAKEN: "choose another selector, or ask the service's operator who has it",
    Outcome.INVALID: "mend the entry and run the same command again",
    Outcome.UNUSABLE: "do not publish it; register another selector, and tell the operator",
    Outcome.FAILED: "run the same command again later",
    Outcome.UNKNOWN: "with a selector, run the same command again; for one without, ask the "
    "service's operator whether it is registered: if so, write its selector into the entry; if "
    "not, add --retry-unknown",
}


class Shown(NamedTuple):
    """How many results of each outcome were drawn, and why they could not be written, if so."""

    counts: Counter[Outcome]
    failure: OutputError | None

    @property
    def status(self) -> ExitCode:
        """The exit code of the worst outcome."""
        codes = [_EXIT_CODES[outcome] for outcome in self.counts]
        return worst([*codes, *([self.failure.exit_code] if self.failure else [])])


def show(
    results: Iterable[Result],
    output_options: OutputOptions,
    reporter: Reporter,
    *,
    expected: int | None = None,
    idle: Callable[[], None] | None = None,
) -> Shown:
    """Write `results` and a summary, and tell what went wrong.

    `expected` is how many results there will be, where that is known. `idle` is called now
    and then while nobody takes what is written.
    """
    counts: Counter[Outcome] = Counter()
    if output_options.fmt is Format.TABLE and output_options.is_on_terminal and expected is None:
        results = list(results)
        expected = len(results)
    tallied = _tallied(results, counts, reporter, in_table=output_options.fmt is Format.TABLE)
    failure = None
    try:
        write_results(tallied, output_options, expected or 0, idle)
    except OutputError as error:
        failure = error
    reporter.summarize(summary(counts), counts)
    if failure is not None:
        reporter.error(failure)
    return Shown(counts, failure)


def write_results(
    results: Iterable[Result],
    output_options: OutputOptions,
    expected: int = 0,
    idle: Callable[[], None] | None = None,
    *,
    must_arrive: bool = False,
) -> None:
    """Write `results` and no more; the rest is as for `show` and `write_chunks`."""
    renderer = open_renderer(
        output_options.fmt,
        ttl=output_options.ttl,
        origin=output_options.origin,
        zones=output_options.zones,
        provider=output_options.provider,
        width=shutil.get_terminal_size((120, 24)).columns,
        colour=output_options.output is None and shows_colour(sys.stdout),
        only_attention=output_options.is_on_terminal and expected > LONG,
    )
    if isinstance(renderer, PerZoneRenderer):
        for result in results:
            renderer.add(result)
        return write_files(renderer.files(), output_options, idle)
    chunks = render_all(renderer, results)
    return write_chunks(chunks, output_options.output, idle, must_arrive=must_arrive)


def summary(counts: Mapping[Outcome, int]) -> str:
    """How many domains came to what, such as "created 3, already there 2"."""
    parts = [f"{word} {counts[outcome]}" for outcome, word in _WORDS.items() if counts.get(outcome)]
    return ", ".join(parts) or "nothing to do"


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The one that stands for all: 130, then 3, 4, 2, 1, 0."""
    order = (
        ExitCode.INTERRUPTED,
        ExitCode.AUTH,
        ExitCode.SERVICE,
        ExitCode.USAGE,
        ExitCode.NO,
    )
    found = set(codes)
    return next((code for code in order if code in found), ExitCode.OK)


def _tallied(
    results: Iterable[Result], counts: Counter[Outcome], reporter: Reporter, *, in_table: bool
) -> Iterator[Result]:
    """Count, and tell of what a machine-readable format would leave out or bury."""
    for result in results:
        outcome = result.outcome
        if outcome in _HINTS and not in_table:
            _tell(result, reporter, with_hint=not counts[outcome])
        counts[outcome] += 1
        yield result


def _tell(result: Result, reporter: Reporter, *, with_hint: bool) -> None:
    found = result.registration
    selector = f" (selector {found.selector})" if found.selector else ""
    text = f"{found.sign_domain}{selector}: {result.outcome}: {result.reason}"
    reporter.warn(text, hint=_HINTS[result.outcome] if with_hint else "", code=result.outcome)
