"""Show checks: on stdout in a format, on stderr what is urgent, and the exit code."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import TextWriter, open_writer, table_layout
from dkimctl.cli.output.results import LONG_TABLE, worst_check
from dkimctl.cli.output.streams import Reporter
from dkimctl.dns.verdicts import Check, Urgency, Verdict, is_good
from dkimctl.errors import ExitCode, OutputError
from dkimctl.models.registration import named
from dkimctl.render.checks import open_checks
from dkimctl.render.monitoring import NO_RUN, Run
from dkimctl.render.renderer import CheckFormat, Renderer
from dkimctl.text.grouping import MAX_ALIKE

# node_exporter, which reads the metrics, is another user; there is no secret among them.
_MODES = {CheckFormat.PROMETHEUS: 0o644}
# How the summary calls verdicts where the records should be gone.
_WORDS_OF_ABSENCE = {Verdict.PUBLISHED: "still in DNS", Verdict.MISSING: "gone"}


class CheckSink:
    """Shows checks, emitted one by one, and counts them.

    A table is written by `close`, the other formats meanwhile. Without a format it is a table that
    leaves rows out where there are many, unless --verbose is given. Leaving the block with an
    error keeps a file as it was.
    """

    def __init__(
        self,
        fmt: CheckFormat | None,
        output: Path | None,
        reporter: Reporter,
        *,
        wanted: Verdict,  # the good verdict
        selection: Sequence[str] = (),  # the words that select what is checked
        is_shown: bool = True,  # on stdout or in a file
        has_targets: bool = False,  # `publish` can publish what is missing
        is_written: bool = False,  # it has
        run: Run = NO_RUN,  # for the formats of monitoring
    ) -> None:
        self._fmt = fmt or CheckFormat.TABLE
        self._shows_all = fmt is not None or reporter.verbose
        self._output = output
        self._reporter = reporter
        self._wanted = wanted
        self._selection = selection
        self._counts: Counter[Verdict] = Counter()
        self._urgent: dict[Urgency, list[str]] = {}
        self._rows: list[Check] = []  # of a table; their number decides which are shown
        self._run = run
        self._writer = open_writer(output, mode=_MODES.get(self._fmt)) if is_shown else None
        self._has_targets = has_targets
        self._is_written = is_written
        self._renderer: Renderer[Check] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._writer is not None:
            self._writer.abort()

    def emit(self, check: Check) -> None:
        self._counts[check.finding.verdict] += 1
        if check.urgency:
            self._urgent.setdefault(check.urgency, []).append(named(check))
        if self._fmt is CheckFormat.TABLE:
            self._rows.append(check)
        elif self._writer is not None:
            self._writer.write(self._opened(self._writer).add(check))

    def close(self) -> ExitCode:
        """Write the rest and the summary."""
        codes = [
            ExitCode.OK if is_good(verdict, self._wanted)
            else ExitCode.SERVICE if verdict is Verdict.NO_ANSWER
            else ExitCode.NO
            for verdict in self._counts
        ]  # fmt: skip
        failure = None
        if self._writer is not None:
            try:
                renderer = self._opened(self._writer)
                for text in itertools.chain(map(renderer.add, self._rows), renderer.end()):
                    self._writer.write(text)
                self._writer.close()
            except OutputError as error:
                failure = error
                codes.append(error.exit_code)
        self._report()
        if failure is not None:
            self._reporter.error(failure)
        return worst_check(codes)

    def exit_status(self, status: ExitCode) -> int:
        """The exit status of a command whose exit code is `status`; plugins have their own."""
        from dkimctl.render.monitoring import NagiosRenderer, State

        if not isinstance(self._renderer, NagiosRenderer):
            return status
        return self._renderer.state or (State.UNKNOWN if status else State.OK)

    def _opened(self, writer: TextWriter) -> Renderer[Check]:
        """The renderer, opened no sooner than the number of rows is known."""
        if self._renderer is None:
            quiet = self._reporter.quiet
            is_on_terminal = self._output is None and sys.stdout.isatty()
            is_cut = is_on_terminal and not self._shows_all and len(self._rows) > LONG_TABLE
            layout = table_layout(self._reporter, self._output)._replace(
                only_attention=is_cut or quiet,
                most_alike=None if self._shows_all or self._output is not None else MAX_ALIKE,
            )
            self._renderer = open_checks(
                self._fmt, wanted=self._wanted, layout=layout, quiet=quiet, run=self._run
            )
            writer.write(self._renderer.begin())
        return self._renderer

    def _report(self) -> None:
        counts = self._counts
        words = _WORDS_OF_ABSENCE if self._wanted is Verdict.MISSING else {}
        parts = [
            f"{words.get(verdict, verdict)} {counts[verdict]}"
            for verdict in Verdict
            if counts[verdict]
        ]
        self._reporter.summarize(", ".join(parts) or "nothing to check", counts)
        next_steps.warn_of_urgent(
            self._reporter, self._urgent, self._selection,
            by_target=self._has_targets, is_written=self._is_written,
        )  # fmt: skip
        if counts[Verdict.MISSING] and not words and not self._urgent:
            publish = next_steps.publish(self._selection, by_target=self._has_targets)
            wait = next_steps.wait_for(self._selection)
            step = f"to publish what is missing: {publish}, then {wait}"
            if self._is_written:
                step = next_steps.wait_for_transfers(self._selection)
            self._reporter.note(f"dkimctl: {step}")
        if counts and counts[Verdict.PUBLISHED] == counts.total():
            rotate = next_steps.rotate(self._selection, by_target=self._has_targets)
            self._reporter.note(f"dkimctl: to replace the keys, every six months or so: {rotate}")
