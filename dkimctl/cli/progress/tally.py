"""How far a registration is, in words."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from dkimctl.models.registration import Outcome, Result

_RATE_OVER = 30.0  # seconds; longer than most waits, so that none makes the rate nothing

_GOOD = frozenset((Outcome.CREATED, Outcome.EXISTS))


class Tally:
    """How many entries are done, need attention or wait, and how fast that goes."""

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
        settled = [found.outcome for found in results if found.outcome is not Outcome.PENDING]
        self.done += len(settled)
        self._need_attention += sum(outcome not in _GOOD for outcome in settled)
        if now - self._samples[-1][0] >= 1:
            self._samples.append((now, self.done))

    def wait(self, entries: int, until: float) -> None:
        self._waits.append((until, entries))

    def line(self, now: float) -> str:
        """Such as "1200 of 5000 done, 3 need attention, 50 waiting, 310 a second, 12 s left"."""
        return ", ".join([f"{self.done} of {self.total} done", *self._rest(now, " a second")])

    def short_line(self, now: float) -> str:
        """The same, to leave room for a bar at 80 columns."""
        return ", ".join([f"{self.done}/{self.total} done", *self._rest(now, "/s")])

    def _rest(self, now: float, per_second: str) -> list[str]:
        rate, left = self._rate(now), self.total - self.done
        words = "needs attention" if self._need_attention == 1 else "need attention"
        parts = [f"{self._need_attention} {words}", f"{self._waiting(now)} waiting"]
        parts.append(f"{rate:.{0 if rate >= 10 else 1}f}{per_second}")
        if rate and left > 0:
            parts.append(f"{duration(left / rate)} left")
        return parts

    def _waiting(self, now: float) -> int:
        self._waits = [wait for wait in self._waits if wait[0] > now]
        return min(sum(entries for _, entries in self._waits), max(self.total - self.done, 0))

    def _rate(self, now: float) -> float:
        """Entries a second, over the last half minute."""
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_OVER:
            self._samples.popleft()
        # The first second does not count: what the ledger knows comes all at once.
        since, done = self._samples[1 if len(self._samples) > 2 else 0]
        return (self.done - done) / (now - since) if now > since else 0.0


def duration(seconds: float) -> str:
    """In whole seconds, rounded up, such as "12 s", "5 min 12 s" or "2 h 10 min"."""
    minutes, left = divmod(max(math.ceil(seconds), 0), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
