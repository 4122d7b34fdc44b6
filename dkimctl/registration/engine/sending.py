"""Send one batch until every entry has its answer, or there is none to be had."""

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
from dkimctl.models.registration import DomainSpec
from dkimctl.registration.engine.batch import Batch
from dkimctl.registration.engine.channel import Stopped, WorkerChannel

if TYPE_CHECKING:
    from dkimctl.client.wire import Reply

    Send = Callable[[Sequence[DomainSpec]], Reply]

MAX_TRIES = 4  # of an entry
# In seconds, between two tries: 0.5 to 1, then 2 to 2.5, then 8 to 8.5; never over 20 in all.
_backoff = tenacity.wait_exponential(multiplier=0.5, exp_base=4) + tenacity.wait_random(0, 0.5)
_LEAST_WAIT = 0.3  # seconds, even if the service says 0
_JITTER = 0.1  # of the time that the service asks for, so that not all come back at once


class BatchSender:
    """Sends batches with `send`, from any number of threads.

    What is safe is tried again: after NotProcessed every entry; after MaybeProcessed, or an
    answer that leaves an entry open, those with a selector. `max_wait` bounds the seconds that
    a batch waits in all because the service asks it to (Retry-After).
    """

    def __init__(self, send: Send, desk: WorkerChannel, *, max_wait: float) -> None:
        self._send = send
        self._desk = desk
        self._max_wait = max_wait
        # One for all: each would hold its batch in a cycle, for the garbage collector to find.
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            wait=_next_wait,
            stop=self._is_over,
            before_sleep=self._put_off,
            sleep=desk.sleep,
            reraise=True,
        )

    def settle(self, batch: Batch) -> None:
        """Find the results of `batch`, and hand it in. Its `error` is to end the whole run."""
        try:
            self._deliver(batch, batch.wanted)
        except Stopped:
            pass
        except DkimctlError as error:
            batch.error = error
        except Exception as error:  # noqa: BLE001 - a defect, which no thread may swallow
            batch.defect = error
            if batch.sending:
                batch.lose(DkimctlError("a defect in dkimctl"))
        batch.close()
        self._desk.hand_in(batch)

    def _deliver(self, batch: Batch, positions: Sequence[int]) -> None:
        try:
            self._retrying(self._attempt, batch, positions)  # again where that is safe and of use
        except (MaybeProcessed, Throttled):
            pass  # the results say so; others may have more luck
        except RequestRefused as refusal:
            if len(batch.sending) == 1:
                batch.refuse(refusal)
                return
            # The entry at fault is in one of the halves, or they are of a size that is taken.
            refused = batch.withdraw(refusal)
            self._deliver(batch, refused[: len(refused) // 2])
            self._deliver(batch, refused[len(refused) // 2 :])

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        batch: Batch = state.args[0]
        positions: Sequence[int] = state.args[1]
        batch.asked_wait += _failure(state).retry_after or 0.0
        return batch.tries(positions) >= MAX_TRIES or batch.asked_wait > self._max_wait

    def _put_off(self, state: tenacity.RetryCallState) -> None:
        self._desk.put_off(state.args[0], _failure(state), state.upcoming_sleep)

    def _attempt(self, batch: Batch, positions: Sequence[int]) -> None:
        """Send these entries, once."""
        self._desk.ask_leave(batch, batch.ahead(positions))
        try:
            reply = self._send([batch.specs[position] for position in batch.sending])
        except RequestRefused:
            raise
        except MaybeProcessed as error:
            batch.lose(error)
            if batch.ahead(positions):
                raise
        except DkimctlError as error:  # among them a token that was refused, or not to be had
            batch.bounce(error)
            raise
        else:
            batch.take(reply)
            if batch.ahead(positions):
                raise MaybeProcessed("the service failed on them, or left them out of its answer")


def _next_wait(state: tenacity.RetryCallState) -> float:
    """In seconds. What the service asks for is never cut short."""
    asked = _failure(state).retry_after
    if asked is None:
        return _backoff(state)
    return max(asked, _LEAST_WAIT) * random.uniform(1, 1 + _JITTER)  # noqa: S311 - no secret


def _may_pass(error: BaseException) -> bool:
    """Whether it is of use to send the request again."""
    return isinstance(error, MaybeProcessed | NotProcessed) and not isinstance(error, NoService)


def _failure(state: tenacity.RetryCallState) -> ServiceError:
    assert state.outcome is not None  # noqa: S101 - for the type checker: an attempt has failed
    return cast(ServiceError, state.outcome.exception())
