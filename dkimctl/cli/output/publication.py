"""Show a plan to publish, and what became of it: on stdout in a format, on stderr the summary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from dkimctl.cli.options.publishing import PublishOptions
from dkimctl.cli.output.destination import open_writer, table_layout
from dkimctl.cli.output.publication_summary import PublicationSummary
from dkimctl.cli.output.results import LONG_TABLE, worst
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode, OutputError
from dkimctl.publishing.plan import CHANGING, PlanItem, Step
from dkimctl.render.changes import open_changes
from dkimctl.render.renderer import PublicationFormat, TableLayout, render_all
from dkimctl.text.grouping import MAX_ALIKE


class PublicationView:
    """Shows the items of a plan as `options` say; `words` are the selection as it was typed.

    If it `is_shown` not, warnings have what the table would.
    """

    def __init__(
        self,
        reporter: Reporter,
        options: PublishOptions,
        words: Sequence[str],
        *,
        is_shown: bool = True,
    ) -> None:
        self.words = words
        self.is_shown = is_shown
        self._reporter = reporter
        self._options = options
        self._summary = PublicationSummary(reporter, options, words, gives_reasons=not is_shown)

    def show_plan(self, items: Sequence[PlanItem]) -> ExitCode:
        """Show what would be changed; returns the exit code of --dry-run."""
        written = self.write(items)
        self._summary.report(items)
        if not any(item.step in CHANGING for item in items):
            return worst([written, _status(items)])
        self._summary.name_command()
        return worst([written, ExitCode.NO, _status(items)])

    def write(self, items: Sequence[PlanItem]) -> ExitCode:
        """Write the items to stdout, or to the file; reports why it cannot."""
        if not self.is_shown:
            return ExitCode.OK
        fmt, output = self._options.fmt, self._options.output
        renderer = open_changes(fmt, self._layout(len(items)), shows_kept=self._reporter.verbose)
        try:
            writer = open_writer(output, is_paged=fmt is PublicationFormat.TABLE)
            for text in render_all(renderer, items):
                writer.write(text)
            writer.close()
        except OutputError as error:
            self._reporter.error(error)
            return error.exit_code
        return ExitCode.OK

    def report(self, items: Sequence[PlanItem]) -> ExitCode:
        """Report what became of the changes; returns the exit code."""
        self._summary.report(items)
        return _status(items)

    def name_next(self, items: Iterable[PlanItem]) -> None:
        """Say what comes after the changes, if any were made."""
        if any(item.is_applied for item in items):
            self._summary.name_next()

    def _layout(self, rows: int) -> TableLayout:
        to_terminal = self._options.output is None and sys.stdout.isatty()
        is_markdown = self._options.fmt is PublicationFormat.MARKDOWN
        is_cut = not self._reporter.verbose and (is_markdown or (to_terminal and rows > LONG_TABLE))
        return table_layout(self._reporter, self._options.output)._replace(
            only_attention=is_cut,
            shown_by="--verbose",
            most_alike=MAX_ALIKE if is_cut else None,
        )


def _status(items: Iterable[PlanItem]) -> ExitCode:
    return worst(_status_of(item) for item in items)


def _status_of(item: PlanItem) -> ExitCode:
    if item.error is not None:
        return item.error.exit_code
    return ExitCode.NO if item.step in (Step.BLOCKED, Step.UNCOVERED) else ExitCode.OK
