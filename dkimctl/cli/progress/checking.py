"""Progress of checks in DNS, on stderr: a bar on a terminal, else a line for each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.display import REDRAW, ProgressDisplay
from dkimctl.dns.verdicts import Check, Verdict, is_good
from dkimctl.text.durations import format_duration


class CheckProgress:
    """Shows how far the checks are. `wanted` is the good verdict.

    Where no bar can be drawn (see ProgressDisplay), a line is written for each verdict that a
    later round changes. `clock` gives seconds.
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
        self._display = ProgressDisplay(reporter, may_draw=may_draw, clock=clock)
        self._clock = clock
        self._sleep = sleep
        self._last: dict[str, Verdict] = {}  # by FQDN, from the second round on
        self._done = 0  # in this round, and good in those before it
        self._total: int | None = None  # known from the second round on

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._display.__exit__()

    def checked(self, check: Check) -> None:
        """A check is done."""
        self._done += 1
        if self._total is not None and not self._display.draws:
            self._write_change(check)
        if self._display.is_due:
            of_all = "" if self._total is None else f"/{self._total}"
            self._display.draw(self._done, self._total, f"{self._done}{of_all} checked")

    def pause(self, seconds: float, checks: Sequence[Check]) -> None:
        """Wait until the next round; `checks` has the latest of each record."""
        self._last = {check.fqdn: check.finding.verdict for check in checks}
        good = self._good_of_all()
        if self._total is None and not self._display.draws:
            self._reporter.note(f"dkimctl: {good}; checking the rest again")
        self._done, self._total = self._count_good(), len(checks)
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            if self._display.draws:
                self._display.draw(
                    self._done, self._total, f"{good}, next check in {format_duration(left)}"
                )
            self._sleep(min(left, REDRAW) if self._display.draws else left)

    def _write_change(self, check: Check) -> None:
        before, verdict = self._last.get(check.fqdn), check.finding.verdict
        if before is not verdict:
            self._last[check.fqdn] = verdict
            text = f"{check.fqdn}: {before} -> {verdict} ({self._good_of_all()})"
            self._reporter.note(f"dkimctl: {text}")

    def _good_of_all(self) -> str:
        word = "gone" if self._wanted is Verdict.MISSING else str(self._wanted)
        return f"{self._count_good()} of {len(self._last)} {word}"

    def _count_good(self) -> int:
        return sum(is_good(verdict, self._wanted) for verdict in self._last.values())
