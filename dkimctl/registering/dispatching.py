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
)
from dkimctl.models import DomainSpec
from dkimctl.registering.batch import Batch
from dkimctl.registering.desk import Desk, Stopped

if TYPE_CHECKING:
    from dkimctl.client import Reply

    Send = Callable[[Sequence[DomainSpec]], Reply]

MAX_TRIES = 4  # of an entry
MAX_BACKOFF = 20.0  # seconds of waiting in all, where the service does not say how long
# In seconds: 0.5 to 1, then 1 to 1.5, then 2 to 2.5.
_backoff = tenacity.wait_exponential(multiplier=0.5) + tenacity.wait_random(0, 0.5)
_JITTER = 0.1  # of the time that the service asks for, so that not all come back at once


class Dispatcher:
    """Sends batches with `send`, from any number of threads.

    What is safe is tried again: after NotProcessed every entry; after MaybeProcessed, or an
    answer that leaves an entry open, those with a selector. `max_wait` bounds the seconds that
    a request waits in all because the service asks it to (Retry-After).
    """

    def __init__(self, send: Send, desk: Desk, *, max_wait: float) -> None:
        self._send = send
        self._desk = desk
        self._max_wait = max_wait

    def settle(self, batch: Batch) -> None:
        """Find the results of `batch`, and hand it in. Its `error` is to end the whole run."""
        try:
            self._deliver(batch, batch.positions)
        except Stopped:
            pass
        except DkimctlError as error:
            batch.error = error
        except Exception as error:  # noqa: BLE001 - a defect, which no thread may swallow
            batch.defect = error
        batch.close()
        self._desk.hand_in(batch)

    def _deliver(self, batch: Batch, positions: Sequence[int]) -> None:
        try:
            self._persist(batch, positions)
        except MaybeProcessed:
            pass  # the results say so
        except RequestRefused as refusal:
            if len(batch.sending) == 1:
                batch.refuse(refusal)
            else:
                self._deliver_halves(batch, refusal)

    def _deliver_halves(self, batch: Batch, refusal: RequestRefused) -> None:
        """Refused as a whole: find the entry at fault, or the size that the service takes."""
        refused, middle = batch.sending, len(batch.sending) // 2
        if len(refused) == len(batch.specs):
            batch.faults.append(
                f"the service refused {len(refused)} domains at once ({refusal.status}): they "
                "were sent in smaller batches, as --batch-size would do"
            )
        self._deliver(batch, refused[:middle])
        self._deliver(batch, refused[middle:])

    def _persist(self, batch: Batch, positions: Sequence[int]) -> None:
        """Send these entries, again where that is safe and of use."""
        patience = _Patience(self._max_wait)

        def put_off(state: tenacity.RetryCallState) -> None:
            self._desk.put_off(batch, _failure(state), state.upcoming_sleep)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            wait=patience.next_wait,
            stop=patience.is_over,
            before_sleep=put_off,
            sleep=self._desk.sleep,
            reraise=True,
        )
        retrying(self._attempt, batch, positions)

    def _attempt(self, batch: Batch, positions: Sequence[int]) -> None:
        self._desk.ask_leave(batch, batch.ahead(positions))
        try:
            reply = self._send([batch.specs[position] for position in batch.sending])
        except MaybeProcessed as error:
            batch.lose(error.message)
            if batch.ahead(positions):
                raise
        except RequestRefused:
            raise
        except DkimctlError as error:  # among them a token that was refused, or not to be had
            batch.bounce(error.message)
            raise
        else:
            batch.take(reply)
            if batch.ahead(positions):
                raise MaybeProcessed("the service failed on them, or left them out of its answer")


class _Patience:
    """How long to wait before one request is sent again, and when to give up."""

    def __init__(self, max_wait: float) -> None:
        self._asked, self._unasked = max_wait, MAX_BACKOFF  # what is left, in seconds

    def next_wait(self, state: tenacity.RetryCallState) -> float:
        """In seconds. What the service asks for is never cut short."""
        asked = _failure(state).retry_after
        if asked is None:
            return _backoff(state)
        return asked * random.uniform(1, 1 + _JITTER)  # noqa: S311 - no secret

    def is_over(self, state: tenacity.RetryCallState) -> bool:
        if state.attempt_number >= MAX_TRIES:
            return True
        asked = _failure(state).retry_after
        if asked is None:
            self._unasked -= state.upcoming_sleep
        else:
            self._asked -= asked
        return min(self._unasked, self._asked) < 0


def _may_pass(error: BaseException) -> bool:
    """Whether it is of use to send the request again."""
    return isinstance(error, MaybeProcessed | NotProcessed) and not isinstance(error, NoService)


def _failure(state: tenacity.RetryCallState) -> ServiceError:
    assert state.outcome is not None  # noqa: S101 - for the type checker: an attempt has failed
    return cast(ServiceError, state.outcome.exception())
