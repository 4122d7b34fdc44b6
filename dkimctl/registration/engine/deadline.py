"""A run that ends early: why, and how long what is under way is waited for."""

from __future__ import annotations

from collections.abc import Callable

from dkimctl.errors import DkimctlError, Interrupted


class ShutdownDeadline:
    """`error` is why the run ends early, and None while it does not.

    `grace` is how long, in seconds, answers to what is under way are then waited for.
    """

    def __init__(self, grace: float, clock: Callable[[], float]) -> None:
        self.grace = grace
        self.error: DkimctlError | None = None
        self._clock = clock
        self._deadline = 0.0

    def begin(self, error: DkimctlError) -> bool:
        """End the run for this reason; whether there was none before."""
        if self.error is not None:
            return False
        self.error = error
        self._deadline = self._clock() + self.grace
        return True

    def hurry(self) -> None:
        """Ctrl-C, while the run ends for another reason: wait no longer."""
        self.error, self._deadline = Interrupted(), self._clock()

    @property
    def is_overdue(self) -> bool:
        return self.error is not None and self._clock() >= self._deadline
