"""Send one batch until every entry has an answer, or will get none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dkimctl.errors import (
    DkimctlError,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    Throttled,
)
from dkimctl.models import DomainSpec
from dkimctl.registration.batches import Batch
from dkimctl.registration.limits import Stopped, WorkerChannel, WorkerEvent

if TYPE_CHECKING:
    from dkimctl.client.wire import Reply

    Send = Callable[[Sequence[DomainSpec]], Reply]

MAX_ATTEMPTS = 4  # for an entry
_SHORTEST_WAIT = 0.3  # seconds, even if the service says 0
_JITTER = 0.1  # of the requested time, so that not all batches come back at once


class BatchSender:
    """Sends batches with `send`, from any number of threads.

    It retries what is safe: after NotProcessed every entry; after MaybeProcessed, or an answer
    that leaves an entry open, those with a selector. `max_wait` bounds the seconds that a batch
    waits in total because the service asks for it (Retry-After).
    """

    def __init__(self, send: Send, channel: WorkerChannel, max_wait: float) -> None:
        self._send = send
        self._channel = channel
        self._max_wait = max_wait

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
        self._channel.report(WorkerEvent(batch, is_done=True))

    def _deliver(self, batch: Batch, positions: Sequence[int]) -> None:
        """Send these entries, until none is open or there were enough attempts."""
        while True:
            try:
                return self._attempt(batch, positions)
            except RequestRefused as refusal:
                # The invalid entry is in one of the halves, or they are of an accepted size.
                if refused := batch.mark_refused(refusal):
                    self._deliver(batch, refused[: len(refused) // 2])
                    self._deliver(batch, refused[len(refused) // 2 :])
                return None
            except NoService:
                raise
            except (MaybeProcessed, NotProcessed) as failure:
                attempts = batch.attempts(positions)
                if failure.retry_after is None:
                    seconds = backoff(attempts)
                else:  # never cut short
                    asked = max(failure.retry_after, _SHORTEST_WAIT)
                    batch.requested_wait += asked
                    seconds = asked * random.uniform(1, 1 + _JITTER)  # noqa: S311
                if attempts >= MAX_ATTEMPTS or batch.requested_wait > self._max_wait:
                    if isinstance(failure, (MaybeProcessed, Throttled)):
                        return None  # the results say so; other batches may succeed
                    raise
                self._channel.report(WorkerEvent(batch, failure=failure, seconds=seconds))
                self._channel.sleep(seconds)

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


def backoff(attempts: int) -> float:
    """Seconds until the next attempt: 0.5 to 1 after the first, then 2 to 2.5, then 8 to 8.5."""
    return 0.5 * 4.0 ** (attempts - 1) + random.uniform(0, 0.5)  # noqa: S311
