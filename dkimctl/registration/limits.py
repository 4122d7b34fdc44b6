"""What bounds a run: how much at once, which batch goes now, for how long, when to give up."""

from __future__ import annotations

import contextlib
import itertools
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from dkimctl.errors import ServiceError, ThreadLimitError, Throttled
from dkimctl.models import Result
from dkimctl.registration.batches import Batch
from dkimctl.threads import DaemonThreadPool, reserved_threads

_RESERVED = 2  # threads that are left for the keyring and for the output


class Limits(NamedTuple):
    """How much at once, and how long; durations are in seconds."""

    batch_size: int = 50
    concurrency: int = 8
    max_wait: float = 300.0  # the longest Retry-After to honour
    grace: float = 30.0  # for which a run that ends early waits for the last answers


class RunObserver(Protocol):
    """Gets the progress of a run, in the thread that runs it."""

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

    So a service that is down does not get many requests whose outcome is unknown. When the service
    asks for fewer (429), the limit is halved, is 0 for as long as it says, and then grows slowly.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.most = most
        self._clock = clock
        self._allowed = 1.0
        self._was_throttled = False
        self._paused_until = clock()

    @property
    def limit(self) -> int:
        return 0 if self.pause_left() else int(self._allowed)

    def pause_left(self) -> float:
        """Seconds in which no request may begin."""
        return max(0.0, self._paused_until - self._clock())

    def answered(self) -> None:
        """A request got a usable answer."""
        step = 1 / self._allowed if self._was_throttled else 1.0
        self._allowed = min(self._allowed + step, self.most)

    def throttled(self, retry_after: float) -> None:
        """The service asks for no requests during `retry_after` seconds."""
        self._was_throttled = True
        self._allowed = max(1.0, self._allowed / 2)
        self._paused_until = max(self._paused_until, self._clock() + retry_after)


class BatchScheduler:
    """The batches in work: as many as the limiter allows, at most `most`, are at the service.

    At full rate 2 * (most - 1) more have a permit and wait for a thread: so no thread waits while
    the ledger is written, and the ledger can record several answers at once. Batches that cannot
    be sent twice are recorded only when they can be sent at once, since a kill leaves every
    recorded one in doubt.
    """

    def __init__(self, most: int, clock: Callable[[], float], channel: WorkerChannel) -> None:
        self.limiter = ConcurrencyLimiter(most, clock)
        self._channel = channel
        self.pool: DaemonThreadPool[Batch] | None = None  # None until `open`
        self._to_resend: list[Batch] = []  # to be recorded, then sent again
        self.ready: list[Batch] = []  # recorded, without a permit
        self._next: Batch | None = None  # not to be recorded yet
        self.in_work: set[Batch] = set()
        self.permitted: set[Batch] = set()
        self._order = itertools.count(1)

    def open(self, work: Callable[[Batch], None], warn: Callable[[str], None]) -> None:
        """Start threads for `work`, as many as can be had. Raises ThreadLimitError without one."""
        pool = DaemonThreadPool(work, "dkimctl-request")
        if not pool.grow(1):
            raise ThreadLimitError
        with reserved_threads(_RESERVED):
            count, most = pool.grow(self.limiter.most), self.limiter.most
        if count < most:
            warn(f"the system allows only {count} of {most} threads for requests (ulimit -u)")
            self.limiter.most = count
        self.pool = pool

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()

    def next_to_record(self, next_batch: Callable[[], Batch | None]) -> list[Batch]:
        """What is to be sent now or soon: first what is sent again, then what is new."""
        at_service = sum(batch.permit.empty() for batch in self.permitted)
        again = sum(batch.was_sent for batch in self.ready)
        free = max(0, self.limiter.limit - at_service - again)
        batches, self._to_resend = self._to_resend[:free], self._to_resend[free:]
        while len(self.in_work) < 3 * self.limiter.most - 2:  # at the service, and those ahead
            self._next = self._next or next_batch()
            sent_at_once = len(self.permitted) + len(self.ready) + len(batches)
            is_now = sent_at_once < self.limiter.limit and len(self.in_work) < self.limiter.most
            if self._next is None or not (is_now or self._next.is_repeatable):
                break
            self.in_work.add(self._next)
            batches.append(self._next)
            self._next = None
        return batches

    def grant_permits(self) -> None:
        """Let go what is ready, as far as the limits allow."""
        # A batch to resend occupies a thread while it waits, so it goes before new ones.
        if any(batch.was_sent for batch in self.ready):
            self.revoke_permits()
        self.ready.sort(key=lambda batch: (not batch.was_sent, batch.order or sys.maxsize))
        limit = self.limiter.limit
        ahead = 2 * (self.limiter.most - 1) if limit == self.limiter.most else 0
        free = max(0, limit + ahead - len(self.permitted))
        for batch in self.ready[:free]:
            self.permitted.add(batch)
            batch.permit.put(True)
            if not batch.order and self.pool is not None:
                batch.order = next(self._order)
                self.pool.submit(batch)
        del self.ready[:free]

    def revoke_permits(self) -> None:
        """Take back the permits that no thread has used yet."""
        for batch in [*self.permitted]:
            with contextlib.suppress(queue.Empty):
                batch.permit.get_nowait()
                self.permitted.discard(batch)
                self.ready.append(batch)

    def remove_waiting(self) -> list[Batch]:
        """Grant no more permits; returns the batches that wanted one."""
        self.revoke_permits()
        waiting = [*self.ready, *self._to_resend, *filter(None, [self._next])]
        self.ready, self._to_resend, self._next = [], [], None
        self.in_work.difference_update(waiting)
        return waiting

    def collect(self, seconds: float) -> Iterator[WorkerEvent]:
        """What workers report within `seconds`, or before the next request may begin."""
        pause = self.limiter.pause_left()
        for event in self._channel.collect(min(pause, seconds) or seconds):
            batch = event.batch
            if batch not in self.in_work:  # it was abandoned
                continue
            if batch in self.permitted:
                self.permitted.discard(batch)
                failure = batch.last_failure
                asked = failure.retry_after if isinstance(failure, ServiceError) else None
                if failure is None:
                    self.limiter.answered()
                elif isinstance(failure, Throttled) or asked is not None:
                    self.limiter.throttled(asked or 0.0)
                    self.revoke_permits()
            if event.is_done:
                self.in_work.discard(batch)
            elif event.failure is None:
                self._to_resend.append(batch)
            yield event

    @property
    def has_backlog(self) -> bool:
        """Whether the threads have enough to send for a while."""
        return len(self.permitted) > 2 * self.limiter.most - 1


class Stopped(Exception):
    """The run ends: nothing more may be sent."""


class WorkerEvent(NamedTuple):
    """What a worker reports about its batch: it is done, backs off, or else needs a permit."""

    batch: Batch
    is_done: bool = False
    failure: ServiceError | None = None  # why it backs off
    seconds: float = 0.0  # for which it backs off


class WorkerChannel:
    """What workers report: that they need a permit to send, back off, or are done."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[WorkerEvent | None] = queue.SimpleQueue()
        self._stopping = threading.Event()

    def wake(self) -> None:
        """End a `collect` that waits. Safe in a signal handler: a SimpleQueue is reentrant."""
        self._events.put(None)

    def end_waits(self) -> None:
        """End all backing off, now and later."""
        self._stopping.set()

    def acquire_permit(self, batch: Batch, positions: Sequence[int]) -> None:
        """Return when these entries may be sent; raises Stopped when they no longer may."""
        if batch.was_sent:  # the engine grants the first permit without being asked
            batch.to_send = positions
            self._events.put(WorkerEvent(batch))
        if not batch.permit.get():
            raise Stopped
        batch.was_sent = True

    def report(self, event: WorkerEvent) -> None:
        self._events.put(event)

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or at once when the run ends."""
        self._stopping.wait(seconds)

    def collect(self, timeout: float) -> list[WorkerEvent]:
        """The reports that are there or arrive within `timeout` seconds; perhaps none."""
        events = []
        with contextlib.suppress(queue.Empty):
            events.append(self._events.get(timeout=timeout))
            while True:
                events.append(self._events.get_nowait())
        return [event for event in events if event is not None]
