"""Send one batch until every entry has an answer, or will get none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import tenacity

from dkimctl.errors import (
    DkimctlError,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    ServiceError,
    Throttled,
)
from dkimctl.models import DomainSpec
from dkimctl.registration.batches import Batch
from dkimctl.registration.limits import Stopped, WorkerChannel

if TYPE_CHECKING:
    from dkimctl.client.wire import Reply

    Send = Callable[[Sequence[DomainSpec]], Reply]


MAX_ATTEMPTS = 4  # for an entry
# Seconds between two attempts: 0.5 to 1, then 2 to 2.5, then 8 to 8.5; no more, since attempts that
# the service has put off (Retry-After) count here, and are not limited by MAX_ATTEMPTS.
_growing = tenacity.wait_exponential(multiplier=0.5, exp_base=4, max=8)
_backoff = _growing + tenacity.wait_random(0, 0.5)
_SHORTEST_WAIT = 0.3  # seconds, even if the service says 0
_JITTER = 0.1  # of the requested time, so that not all batches come back at once


class BatchSender:
    """Sends batches with `send`, from any number of threads.

    It retries what is safe: after NotProcessed every entry; after MaybeProcessed, or an answer
    that leaves an entry open, those with a selector. `max_wait` bounds the seconds that a batch
    waits in total because the service asks for it (Retry-After).
    """

    def __init__(self, send: Send, channel: WorkerChannel, *, max_wait: float) -> None:
        self._send = send
        self._channel = channel
        self._max_wait = max_wait
        # One for all: each would hold its batch in a cycle, for the garbage collector to find.
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((MaybeProcessed, NotProcessed))
            & tenacity.retry_if_not_exception_type(NoService),
            wait=_next_wait,
            stop=self._is_over,
            before_sleep=lambda state: channel.report_backoff(
                state.args[0], _failure(state), state.upcoming_sleep
            ),
            sleep=channel.sleep,
            reraise=True,
        )

    def process(self, batch: Batch) -> None:
        """Get the results of `batch`, and report it done. Its `error` ends the whole run."""
        try:
            self._deliver(batch, batch.to_send)
        except Stopped:
            pass
        except DkimctlError as error:
            batch.error = error
        except Exception as error:  # noqa: BLE001 - a defect, which no thread may swallow
            batch.defect = error
            if batch.in_flight:
                batch.mark_unknown(DkimctlError("a defect in dkimctl"))
        batch.finish()
        self._channel.report_done(batch)

    def _deliver(self, batch: Batch, positions: Sequence[int]) -> None:
        try:
            self._retrying(self._attempt, batch, positions)
        except (MaybeProcessed, Throttled):
            pass  # the results say so; other batches may succeed
        except RequestRefused as refusal:
            # The invalid entry is in one of the halves, or they are of an accepted size.
            if refused := batch.mark_refused(refusal):
                self._deliver(batch, refused[: len(refused) // 2])
                self._deliver(batch, refused[len(refused) // 2 :])

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        batch: Batch = state.args[0]
        positions: Sequence[int] = state.args[1]
        retry_after = _failure(state).retry_after
        if retry_after is not None:
            batch.requested_wait += max(retry_after, _SHORTEST_WAIT)
        return batch.attempts(positions) >= MAX_ATTEMPTS or batch.requested_wait > self._max_wait

    def _attempt(self, batch: Batch, positions: Sequence[int]) -> None:
        """Send these entries, once."""
        self._channel.acquire_permit(batch, batch.still_open(positions))
        try:
            reply = self._send([batch.specs[position] for position in batch.in_flight])
        except RequestRefused:
            raise
        except MaybeProcessed as error:
            batch.mark_unknown(error)
            if batch.still_open(positions):
                raise
        except DkimctlError as error:  # such as a token that was refused or cannot be obtained
            batch.mark_not_processed(error)
            raise
        else:
            batch.take_reply(reply)
            if batch.still_open(positions):
                raise MaybeProcessed("the service failed on them, or left them out of its answer")


def _next_wait(state: tenacity.RetryCallState) -> float:
    """In seconds. A wait that the service asks for is never cut short."""
    retry_after = _failure(state).retry_after
    if retry_after is None:
        return _backoff(state)
    return max(retry_after, _SHORTEST_WAIT) * random.uniform(1, 1 + _JITTER)  # noqa: S311


def _failure(state: tenacity.RetryCallState) -> ServiceError:
    assert state.outcome is not None  # noqa: S101 - for the type checker: an attempt has failed
    return cast(ServiceError, state.outcome.exception())
