"""Whether what became of a batch is to end the run."""

from __future__ import annotations

from dkimctl.errors import DkimctlError, ServiceError
from dkimctl.registration.engine.batch import Batch

_GIVE_UP_AFTER = 5  # batches in a row without any usable answer


class CircuitBreaker:
    """Looks at batches one after the other. `max_wait`, in seconds, bounds what a wait may be."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        self._unanswered = 0  # batches in a row

    def of_wait(self, batch: Batch) -> ServiceError | None:
        """The error to end the run with where the service asks for more patience than it may."""
        failure = batch.failure
        if not isinstance(failure, ServiceError) or failure.retry_after is None:
            return None
        if failure.retry_after <= self._max_wait:
            return None
        return ServiceError(
            f"{failure.message}; it asks to wait {failure.retry_after:.0f} s, and --max-wait "
            f"allows {self._max_wait:.0f} s",
            hint="run the same command again later, or with a longer --max-wait",
        )

    def of_result(self, batch: Batch) -> DkimctlError | None:
        """The error to end the run with after a batch that is through, if any."""
        self._unanswered = 0 if batch.has_answer else self._unanswered + 1
        if batch.defect is not None:
            return DkimctlError("a defect in dkimctl")
        if batch.error is not None or self._unanswered < _GIVE_UP_AFTER:
            return batch.error
        reason = batch.failure.message if batch.failure else ""
        return ServiceError(
            f"no usable answer to {self._unanswered} batches in a row: {reason}",
            hint="run the same command again later; what is answered is kept",
        )
