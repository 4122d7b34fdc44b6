"""Progress of a registration, on stderr: a bar on a terminal, else lines with --verbose."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Self

from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.progress.display import ProgressDisplay
from dkimctl.models.registration import GOOD, Outcome, Result
from dkimctl.text.durations import format_duration
from dkimctl.text.grouping import counted

# All in seconds.
_LINE_EVERY = 5.0
_MUCH_LONGER = 10.0
_RATE_OVER = 30.0  # longer than most waits, which would otherwise bring the rate to zero


class RegistrationProgress:
    """Shows how far a run of `total` entries is. All is called from the main thread.

    Where no bar can be drawn (see ProgressDisplay), `verbose` asks for a line every five seconds.
    `clock` gives seconds.
    """

    def __init__(
        self,
        total: int,
        reporter: Reporter,
        *,
        verbose: bool,
        may_draw: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reporter = reporter
        self._verbose = verbose
        self._clock = clock
        self._display = ProgressDisplay(reporter, may_draw=may_draw, clock=clock)
        now = clock()
        self._tally = Tally(total, now)
        self._next_line = now + _LINE_EVERY
        self._next_wait_note = self._noted_until = now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._display.__exit__()

    def settled(self, results: Sequence[Result]) -> None:
        """Results of entries, as they come in."""
        self._tally.settle(results, self._clock())
        self.tick()

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """This many entries wait before they are tried again.

        Noted once in five seconds, since every batch waits when the service is down; sooner only
        for a wait that is much longer.
        """
        now = self._clock()
        until = now + seconds
        self._tally.wait(entries, until)
        if now >= self._next_wait_note or until > self._noted_until + _MUCH_LONGER:
            self._next_wait_note = now + _LINE_EVERY
            self._noted_until = until
            domains = counted(entries, "domain")
            self._reporter.note(
                f"dkimctl: waiting {format_duration(seconds)} for {domains}: {reason}"
            )
        self.tick()

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, but waits for answers to its last requests, at most `seconds`."""
        count = counted(requests, "request")
        self._reporter.note(
            f"dkimctl: stopping; {count} in flight, waiting up to {format_duration(seconds)} for "
            "answers (Ctrl-C to exit at once)"
        )

    def tick(self) -> None:
        """Show the time that has passed; to be called at least twice a second."""
        now = self._clock()
        if self._display.draws:
            if self._display.is_due and (self._display.is_shown or self._tally.is_open):
                self._display.draw(self._tally.done, self._tally.total, self._tally.short_line(now))
        elif self._verbose and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            self._reporter.note(f"dkimctl: {self._tally.line(now)}")


class Tally:
    """How many entries are done, need attention or wait, and the rate. Times are in seconds."""

    def __init__(self, total: int, now: float) -> None:
        self.total = total
        self.done = 0
        self._need_attention = 0
        self._waits: list[tuple[float, int]] = []  # (until when, entries)
        self._samples = deque([(now, 0)])  # (when, done), a second apart

    @property
    def is_open(self) -> bool:
        return self.done < self.total

    def settle(self, results: Sequence[Result], now: float) -> None:
        outcomes = [result.outcome for result in results if result.outcome is not Outcome.PENDING]
        self.done += len(outcomes)
        self._need_attention += sum(outcome not in GOOD for outcome in outcomes)
        if now - self._samples[-1][0] >= 1:
            self._samples.append((now, self.done))

    def wait(self, entries: int, until: float) -> None:
        self._waits.append((until, entries))

    def line(self, now: float) -> str:
        """Such as "1200 of 5000 done, 3 need attention, 50 waiting, 310 a second, 12 s left"."""
        return ", ".join([f"{self.done} of {self.total} done", *self._rest(now, " a second")])

    def short_line(self, now: float) -> str:
        """The same, short enough for a bar beside it at 80 columns."""
        return ", ".join([f"{self.done}/{self.total} done", *self._rest(now, "/s")])

    def _rest(self, now: float, per_second: str) -> list[str]:
        rate, left = self._rate(now), self.total - self.done
        verb = "needs" if self._need_attention == 1 else "need"
        parts = [f"{self._need_attention} {verb} attention", f"{self._waiting(now)} waiting"]
        parts.append(f"{rate:.{0 if rate >= 10 else 1}f}{per_second}")
        if rate and left > 0:
            parts.append(f"{format_duration(left / rate)} left")
        return parts

    def _waiting(self, now: float) -> int:
        self._waits = [(until, entries) for until, entries in self._waits if until > now]
        return min(sum(entries for _, entries in self._waits), max(self.total - self.done, 0))

    def _rate(self, now: float) -> float:
        """Entries a second, over the last half minute."""
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_OVER:
            self._samples.popleft()
        # Leave out the first second, in which everything known to the ledger comes at once.
        since, done = self._samples[1 if len(self._samples) > 2 else 0]
        return (self.done - done) / (now - since) if now > since else 0.0
