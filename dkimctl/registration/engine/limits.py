"""What bounds a run: how much at once, for how long, and when to give up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from dkimctl.errors import DkimctlError, Interrupted, ServiceError
from dkimctl.models.registration import Result
from dkimctl.registration.engine.batches import Batch

_MAX_UNANSWERED = 5  # batches in a row without any usable answer


class Limits(NamedTuple):
    """How much at once, and how long; durations are in seconds.

    `max_wait`: the longest Retry-After to honour. `grace`: how long a run that ends early waits
    for the last answers.
    """

    batch_size: int = 50
    concurrency: int = 8
    max_wait: float = 300.0
    grace: float = 30.0


class RunObserver(Protocol):
    """Is told how a run goes on, in the thread that runs it."""

    def settled(self, results: Sequence[Result]) -> None:
        """These entries have results; a whole batch at once, in no order."""

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """`entries` entries wait `seconds` before they are sent again."""

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, and waits at most `seconds` for the answers to `requests`."""

    def tick(self) -> None:
        """Time has passed."""


class ConcurrencyLimiter:
    """How many requests may be in flight: one at first, one more for each answer, up to `most`.

    So a service that is down, or a wrong address, does not get many requests whose outcome is
    unknown. When the service asks for fewer (429), the limit is halved, is 0 for as long as the
    service says, and from then on grows slowly.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._allowed = 1.0
        self._was_throttled = False
        self._paused_until = clock()

    def cap(self, most: int) -> None:
        """Allow no more than `most` from now on."""
        self._most = most

    @property
    def limit(self) -> int:
        return 0 if self.pause_left() else int(self._allowed)

    def pause_left(self) -> float:
        """Seconds in which no request may begin."""
        return max(0.0, self._paused_until - self._clock())

    def answered(self) -> None:
        """A request got a usable answer."""
        step = 1 / self._allowed if self._was_throttled else 1.0
        self._allowed = min(self._allowed + step, self._most)

    def throttled(self, retry_after: float) -> None:
        """The service asks for no requests during `retry_after` seconds."""
        self._was_throttled = True
        self._allowed = max(1.0, self._allowed / 2)
        self._paused_until = max(self._paused_until, self._clock() + retry_after)


class CircuitBreaker:
    """Decides whether a failure ends the run. `max_wait` is as in Limits."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        self._unanswered = 0  # batches in a row

    def error_of_wait(self, batch: Batch) -> ServiceError | None:
        """The error to end the run with, where the service asks for a longer wait than allowed."""
        failure = batch.last_failure
        if not isinstance(failure, ServiceError) or failure.retry_after is None:
            return None
        if failure.retry_after <= self._max_wait:
            return None
        return ServiceError(
            f"{failure.message}; it asks to wait {failure.retry_after:.0f} s, and --max-wait "
            f"allows {self._max_wait:.0f} s",
            hint="run the same command again later, or with a longer --max-wait",
        )

    def error_of_finished(self, batch: Batch) -> DkimctlError | None:
        """The error to end the run with after a batch that is finished, if any."""
        self._unanswered = 0 if batch.was_ever_answered else self._unanswered + 1
        if batch.defect is not None:
            return DkimctlError("a defect in dkimctl")
        if batch.error is not None or self._unanswered < _MAX_UNANSWERED:
            return batch.error
        reason = batch.last_failure.message if batch.last_failure else ""
        return ServiceError(
            f"no usable answer to {self._unanswered} batches in a row: {reason}",
            hint="run the same command again later; the answers so far are in the ledger",
        )


class ShutdownDeadline:
    """Why a run ends early (`error`, None while it goes on), and until when answers are awaited.

    `grace` is as in Limits.
    """

    def __init__(self, grace: float, clock: Callable[[], float]) -> None:
        self.grace = grace
        self.error: DkimctlError | None = None
        self._clock = clock
        self._deadline = 0.0

    def begin(self, error: DkimctlError) -> bool:
        """End the run with `error`; returns whether it was going on until now."""
        if self.error is not None:
            return False
        self.error = error
        self._deadline = self._clock() + self.grace
        return True

    def expire_now(self) -> None:
        """Ctrl-C while the run ends for another reason: wait no longer."""
        self.error, self._deadline = Interrupted(), self._clock()

    @property
    def is_expired(self) -> bool:
        return self.error is not None and self._clock() >= self._deadline
