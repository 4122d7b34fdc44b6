"""Progress of checks in DNS, on stderr: a bar on a terminal, else a line for each change."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from dkimctl.cli.output import Reporter
from dkimctl.cli.progress import is_drawable
from dkimctl.cli.progress.bar import Bar
from dkimctl.cli.progress.tally import duration
from dkimctl.publication import Check, Verdict

# In seconds.
_BAR_AFTER = 1.0  # shorter work needs no bar
_REDRAW = 0.2


class Looking:
    """Tells how far checks are. `wanted` is the verdict that is good.

    `total` is how many there are, where that is known. `tells_changes`: off a terminal, each
    check that comes out otherwise than the last time is a line. `clock` gives seconds.
    """

    def __init__(
        self,
        reporter: Reporter,
        wanted: Verdict,
        *,
        total: int | None,
        tells_changes: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._reporter = reporter
        self._wanted = wanted
        self._total = total
        self._draws = is_drawable(sys.stderr) and not reporter.quiet
        self._tells = tells_changes and not self._draws
        self._clock = clock
        self._sleep = sleep
        self._next_draw = clock() + _BAR_AFTER
        self._last: dict[str, Verdict] = {}  # by FQDN, where changes are told
        self._counts: Counter[Verdict] = Counter()
        self._checked = 0
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
        self._checked += 1
        if self._tells:
            self._tell(check)
        if self._draws and self._clock() >= self._next_draw:
            of_all = "" if self._total is None else f"/{self._total}"
            self._draw(self._checked, f"{self._checked}{of_all} checked")

    def rest(self, seconds: float, checks: Sequence[Check]) -> None:
        """Wait so long until the next round; `checks` are as they are now."""
        good = sum(check.finding.verdict is self._wanted for check in checks)
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            if self._draws:
                self._draw(
                    good, f"{good}/{len(checks)} {_word(self._wanted)}, again in {duration(left)}"
                )
            self._sleep(min(left, _REDRAW if self._draws else left))
        self._checked = good

    def _tell(self, check: Check) -> None:
        verdict = check.finding.verdict
        before = self._last.get(check.fqdn)
        self._last[check.fqdn] = verdict
        if before is verdict:
            return
        self._counts[verdict] += 1
        self._counts[before or verdict] -= before is not None
        change = f"{before} -> {verdict}" if before else str(verdict)
        good = f"{self._counts[self._wanted]} of {self._total} {_word(self._wanted)}"
        self._reporter.note(f"dkimctl: {check.fqdn}: {change} ({good})")

    def _draw(self, done: int, text: str) -> None:
        self._next_draw = self._clock() + _REDRAW
        try:
            self._bar = self._bar or Bar(self._total)
            self._bar.show(done, text)
        except OSError:  # the terminal is gone; the work goes on
            self._draws = False


def _word(wanted: Verdict) -> str:
    return "absent" if wanted is Verdict.MISSING else str(wanted)
