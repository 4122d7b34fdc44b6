"""Show what DNS says: on stdout in a format, on stderr what does harm, and the exit code."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from dkimctl.cli.output.destination import write_chunks
from dkimctl.cli.output.results import LONG, worst
from dkimctl.cli.output.streams import Reporter, shows_colour
from dkimctl.cli.selection import few, named
from dkimctl.errors import ExitCode, OutputError
from dkimctl.publication.verdicts import Check, Urgency, Verdict
from dkimctl.render.formats import open_check_renderer
from dkimctl.render.renderer import CheckFormat, render_all


def show_checks(
    checks: Iterable[Check],
    fmt: CheckFormat,
    output: Path | None,
    reporter: Reporter,
    *,
    wanted: Verdict,
) -> ExitCode:
    """Write `checks` and a summary. `wanted` is the verdict that is good."""
    tally = _Tally()
    failure = None
    try:
        write_chunks(_render(tally.counted(checks), fmt, output, wanted), output)
    except OutputError as error:
        failure = error
    tally.tell(reporter)
    if failure is not None:
        reporter.error(failure)
    codes = [_exit_code(verdict, wanted) for verdict in tally.counts]
    return worst([*codes, *([failure.exit_code] if failure else [])])


class _Tally:
    """How many checks came to what, and which of them cannot wait."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self._urgent: dict[Urgency, list[str]] = {Urgency.SIGNING: [], Urgency.SOON: []}

    def counted(self, checks: Iterable[Check]) -> Iterator[Check]:
        for check in checks:
            self.counts[check.finding.verdict] += 1
            if check.urgency is not Urgency.NONE:
                self._urgent[check.urgency].append(named(check))
            yield check

    def tell(self, reporter: Reporter) -> None:
        said = [f"{verdict} {self.counts[verdict]}" for verdict in Verdict if self.counts[verdict]]
        reporter.summarize(", ".join(said) or "nothing to check", self.counts)
        if names := self._urgent[Urgency.SIGNING]:
            reporter.warn(
                "signing now without DNS, so that nobody can verify the mail: "
                f"{len(names)} ({few(names)})",
                hint="publish them: dkimctl show-dns, then dkimctl check-dns --wait 30m",
                code=Urgency.SIGNING,
            )
        if names := self._urgent[Urgency.SOON]:
            text = f"signing starts soon, and DNS is not ready: {len(names)} ({few(names)})"
            reporter.warn(text, code=Urgency.SOON)


def _render(
    checks: Iterable[Check], fmt: CheckFormat, output: Path | None, wanted: Verdict
) -> Iterator[str]:
    if fmt is CheckFormat.TABLE:
        checks = list(checks)
        is_long = len(checks) > LONG
    else:
        is_long = False
    renderer = open_check_renderer(
        fmt,
        wanted=wanted,
        width=shutil.get_terminal_size((120, 24)).columns,
        colour=output is None and shows_colour(sys.stdout),
        only_attention=output is None and sys.stdout.isatty() and is_long,
    )
    return render_all(renderer, checks)


def _exit_code(verdict: Verdict, wanted: Verdict) -> ExitCode:
    if verdict is wanted:
        return ExitCode.OK
    return ExitCode.SERVICE if verdict is Verdict.NO_ANSWER else ExitCode.NO
