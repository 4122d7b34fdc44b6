"""How many requests may be under way at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable


class ConcurrencyLimiter:
    """Begins with one request, and allows one more for each that is answered, up to `most`.

    A service that is down or at the wrong address gets no crowd of requests that way, of each
    of which nobody would know the outcome. When the service asks for fewer (429), half as
    many are allowed, none for as long as it says, and from then on more only slowly.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._allowed = 1.0
        self._was_throttled = False
        self._paused_until = clock()

    @property
    def at_once(self) -> int:
        """How many requests may be under way now."""
        return 0 if self.pause_left() else int(self._allowed)

    def pause_left(self) -> float:
        """For how many seconds none may begin."""
        return max(0.0, self._paused_until - self._clock())

    def answered(self) -> None:
        """The service has answered a request usefully."""
        step = 1 / self._allowed if self._was_throttled else 1.0
        self._allowed = min(self._allowed + step, self._most)

    def throttled(self, retry_after: float) -> None:
        """The service asks to be left alone for so many seconds."""
        self._was_throttled = True
        self._allowed = max(1.0, self._allowed / 2)
        self._paused_until = max(self._paused_until, self._clock() + retry_after)
