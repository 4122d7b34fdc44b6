"""Which batches may be sent now, and what their workers report."""

from __future__ import annotations

import contextlib
import itertools
import queue
import sys
from collections.abc import Callable, Iterable, Iterator

from dkimctl.errors import ServiceError, ThreadLimitError, Throttled
from dkimctl.registration.engine.batches import Batch
from dkimctl.registration.engine.limits import ConcurrencyLimiter
from dkimctl.registration.engine.workers import EventKind, WorkerChannel, WorkerEvent
from dkimctl.system.threads import DaemonThreadPool, StartThread, reserved_threads

_RESERVED = 2  # threads that are left for the keyring and for the output


class BatchScheduler:
    """The batches in work: at most `most`, or as many as the limiter allows, are at the service.

    At full rate twice as many more have a permit and wait for a thread: so no thread waits while
    the ledger is written, and the ledger can record several answers at once. Batches that cannot
    be sent twice are recorded only when they can be sent at once, since a kill leaves every
    recorded one in doubt.
    """

    def __init__(
        self,
        most: int,
        limiter: ConcurrencyLimiter,
        channel: WorkerChannel,
        start_thread: StartThread,
    ) -> None:
        self._most = most
        self._start_thread = start_thread
        self._limiter = limiter
        self._channel = channel
        self._pool: DaemonThreadPool[Batch] | None = None
        self._to_resend: list[Batch] = []  # to be recorded, then sent again
        self._ready: list[Batch] = []  # recorded, without a permit
        self._next: Batch | None = None  # not to be recorded yet
        self.in_work: set[Batch] = set()
        self.permitted: set[Batch] = set()
        self._order = itertools.count(1)

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    @property
    def _most_ahead(self) -> int:
        return 2 * (self._most - 1)

    def open(self, work: Callable[[Batch], None], warn: Callable[[str], None]) -> None:
        """From now on threads process batches with `work`: `most`, or as many as can be had.

        `warn` is told if there are fewer. Raises ThreadLimitError if there are none.
        """
        pool = DaemonThreadPool(work, "dkimctl-request", self._start_thread)
        if not pool.grow(1):
            raise ThreadLimitError
        with reserved_threads(_RESERVED, self._start_thread):
            count = pool.grow(self._most)
        if count < self._most:
            warn(f"the system allows only {count} of {self._most} threads for requests (ulimit -u)")
            self._most = count
            self._limiter.cap(count)
        self._pool = pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def next_to_record(self, next_batch: Callable[[], Batch | None]) -> list[Batch]:
        """What is to be sent now or soon: first what is sent again, then what is new."""
        at_service = sum(batch.permit.empty() for batch in self.permitted)
        again = sum(batch.was_sent for batch in self._ready)
        free = max(0, self._limiter.limit - at_service - again)
        batches, self._to_resend = self._to_resend[:free], self._to_resend[free:]
        while len(self.in_work) < self._most + self._most_ahead:
            self._next = self._next or next_batch()
            sent_at_once = len(self.permitted) + len(self._ready) + len(batches)
            is_now = sent_at_once < self._limiter.limit and len(self.in_work) < self._most
            if self._next is None or not (is_now or self._next.is_repeatable):
                break
            self.in_work.add(self._next)
            batches.append(self._next)
            self._next = None
        return batches

    def add_ready(self, batches: Iterable[Batch]) -> None:
        """These may be sent: the ledger has their intents."""
        self._ready.extend(batches)

    def grant_permits(self) -> None:
        """Let go what is ready, as far as the limits allow."""
        # A batch to resend occupies a thread while it waits, so it goes before new ones.
        if any(batch.was_sent for batch in self._ready):
            self.revoke_permits()
        self._ready.sort(key=lambda batch: (not batch.was_sent, batch.order or sys.maxsize))
        limit = self._limiter.limit
        ahead = self._most_ahead if limit == self._most else 0
        free = max(0, limit + ahead - len(self.permitted))
        for batch in self._ready[:free]:
            self._grant(batch)
        del self._ready[:free]

    def revoke_permits(self) -> None:
        """Take back the permits that no thread has used yet."""
        for batch in [*self.permitted]:
            with contextlib.suppress(queue.Empty):
                batch.permit.get_nowait()
                self.permitted.discard(batch)
                self._ready.append(batch)

    def remove_waiting(self) -> list[Batch]:
        """Grant no more permits; returns the batches that wanted one."""
        self.revoke_permits()
        waiting = [*self._ready, *self._to_resend, *filter(None, [self._next])]
        self._ready, self._to_resend, self._next = [], [], None
        self.in_work.difference_update(waiting)
        return waiting

    def collect(self, seconds: float) -> Iterator[WorkerEvent]:
        """What workers report within `seconds`, or before the next request may begin."""
        pause = self._limiter.pause_left()
        for event in self._channel.collect(min(pause, seconds) or seconds):
            if event.batch in self.in_work:  # it was not abandoned
                self._update(event)
                yield event

    @property
    def has_backlog(self) -> bool:
        """Whether the threads have enough to send for a while."""
        return len(self.permitted) > self._most + self._most_ahead // 2

    @property
    def is_paused(self) -> bool:
        """Whether the service has asked for a time without requests."""
        return self._limiter.pause_left() > 0

    def abandon(self) -> None:
        """Ignore whatever is still reported of what is in work."""
        self.in_work.clear()
        self.permitted.clear()

    def _grant(self, batch: Batch) -> None:
        self.permitted.add(batch)
        batch.permit.put(True)
        if not batch.order and self._pool is not None:
            batch.order = next(self._order)
            self._pool.submit(batch)

    def _update(self, event: WorkerEvent) -> None:
        batch = event.batch
        if batch in self.permitted:
            self.permitted.discard(batch)
            self._adapt(batch)
        if event.kind is EventKind.DONE:
            self.in_work.discard(batch)
        elif event.kind is EventKind.NEEDS_PERMIT:
            self._to_resend.append(batch)

    def _adapt(self, batch: Batch) -> None:
        """Send more or fewer requests at once, as the service takes them."""
        failure = batch.last_failure
        if batch.last_was_answered:
            self._limiter.answered()
        elif isinstance(failure, Throttled):
            self._throttle(failure.retry_after or 0.0)
        elif isinstance(failure, ServiceError) and failure.retry_after is not None:
            self._throttle(failure.retry_after)

    def _throttle(self, retry_after: float) -> None:
        self._limiter.throttled(retry_after)
        self.revoke_permits()
