"""Progress of checks in DNS, on stderr: a bar on a terminal, else a line for each change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.bar import Bar
from dkimctl.cli.progress.registering import is_drawable
from dkimctl.cli.progress.tally import duration
from dkimctl.publication.verdicts import Check, Verdict

# In seconds.
_BAR_AFTER = 1.0  # shorter work needs no bar
_REDRAW = 0.2


class CheckProgress:
    """Tells how far checks are. `wanted` is the verdict that is good.

    A bar is drawn on a terminal, unless `may_draw` says that something else is being shown
    there. Where there is none, each check that a later round finds changed is a line. `clock`
    gives seconds.
    """

    def __init__(
        self,
        reporter: Reporter,
        wanted: Verdict,
        *,
        may_draw: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._reporter = reporter
        self._wanted = wanted
        self._draws = may_draw and not reporter.quiet and is_drawable(sys.stderr)
        self._clock = clock
        self._sleep = sleep
        self._next_draw = clock() + _BAR_AFTER
        self._last: dict[str, Verdict] = {}  # by FQDN, once there is a second round
        self._done = 0  # in this round, or in all rounds before it
        self._total: int | None = None  # known from the second round on
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(OSError):
                bar.close()

    def done(self, check: Check) -> None:
        """A check, as it is made."""
        self._done += 1
        if self._total is not None and not self._draws:
            self._tell(check)
        if self._draws and self._clock() >= self._next_draw:
            of_all = "" if self._total is None else f"/{self._total}"
            self._draw(f"{self._done}{of_all} checked")

    def rest(self, seconds: float, checks: Sequence[Check]) -> None:
        """Wait so long until the next round; `checks` are all of them, as they are now."""
        self._last = {check.fqdn: check.finding.verdict for check in checks}
        good = sum(verdict is self._wanted for verdict in self._last.values())
        if self._total is None and not self._draws:
            self._reporter.note(
                f"dkimctl: {self._good(good, len(checks))}; looking again for the rest"
            )
        self._done, self._total = good, len(checks)
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            if self._draws:
                self._draw(f"{self._good(good, len(checks))}, again in {duration(left)}")
            self._sleep(min(left, _REDRAW) if self._draws else left)

    def _tell(self, check: Check) -> None:
        before, verdict = self._last.get(check.fqdn), check.finding.verdict
        if before is verdict:
            return
        self._last[check.fqdn] = verdict
        good = sum(found is self._wanted for found in self._last.values())
        text = f"{before} -> {verdict} ({self._good(good, len(self._last))})"
        self._reporter.note(f"dkimctl: {check.fqdn}: {text}")

    def _good(self, count: int, total: int) -> str:
        word = "absent" if self._wanted is Verdict.MISSING else str(self._wanted)
        return f"{count} of {total} {word}"

    def _draw(self, text: str) -> None:
        self._next_draw = self._clock() + _REDRAW
        try:
            self._bar = self._bar or Bar(self._total)
            self._bar.show(self._done, text, self._total)
        except OSError:  # the terminal is gone; the work goes on
            self._draws = False
