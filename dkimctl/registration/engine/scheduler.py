"""The batches in work: which may be sent now, and what is heard of them."""

from __future__ import annotations

import contextlib
import itertools
import queue
import sys
from collections.abc import Callable, Iterable, Iterator

from dkimctl.errors import ServiceError, Throttled
from dkimctl.registration.engine.batch import Batch
from dkimctl.registration.engine.channel import EventKind, WorkerChannel, WorkerEvent
from dkimctl.registration.engine.pacing import ConcurrencyLimiter
from dkimctl.registration.engine.threads import DaemonThreadPool


class BatchScheduler:
    """The batches in work; `most` of them, or as many as the pace allows, are at the service.

    At full pace twice as many more have leave to be sent, and wait for a thread: so no thread
    waits while the ledger keeps answers, and it may keep those of several requests at once. But
    of what cannot be sent a second time only so much is recorded as is sent at once, since a
    kill leaves whatever was recorded in doubt.
    """

    def __init__(self, most: int, pace: ConcurrencyLimiter, desk: WorkerChannel) -> None:
        self._most = most
        self._ahead = 2 * (most - 1)
        self._pace = pace
        self._desk = desk
        self._crew: DaemonThreadPool[Batch] | None = None
        self._askers: list[Batch] = []  # that want to be sent again, and are to be recorded
        self._ready: list[Batch] = []  # that are recorded, and wait for room
        self._next: Batch | None = None  # which is not to be recorded yet
        self.in_work: set[Batch] = set()
        self.under_way: set[Batch] = set()  # that have leave
        self._turns = itertools.count(1)

    @property
    def is_open(self) -> bool:
        return self._crew is not None

    def open(self, settle: Callable[[Batch], None]) -> None:
        """From now on threads have batches settled."""
        self._crew = DaemonThreadPool(self._most, settle)

    def close(self) -> None:
        if self._crew is not None:
            self._crew.dismiss()

    def next_to_record(self, next_batch: Callable[[], Batch | None]) -> list[Batch]:
        """What is to be sent now or soon: first what is sent again, then what is new."""
        at_service = sum(batch.leave.empty() for batch in self.under_way)
        again = sum(batch.was_sent for batch in self._ready)
        room = max(0, self._pace.at_once - at_service - again)
        found, self._askers = self._askers[:room], self._askers[room:]
        while len(self.in_work) < self._most + self._ahead:
            self._next = self._next or next_batch()
            sent_at_once = len(self.under_way) + len(self._ready) + len(found)
            is_now = sent_at_once < self._pace.at_once and len(self.in_work) < self._most
            if self._next is None or not (is_now or self._next.is_repeatable):
                break
            self.in_work.add(self._next)
            found.append(self._next)
            self._next = None
        return found

    def add_ready(self, batches: Iterable[Batch]) -> None:
        """These may be let go: the ledger has their intents."""
        self._ready.extend(batches)

    def proceed(self) -> None:
        """Give leave to what is ready, as far as there is room."""
        # What is to be sent again holds a thread while it waits, and so goes before what may
        # have none.
        if any(batch.was_sent for batch in self._ready):
            self.recall()
        self._ready.sort(key=lambda batch: (not batch.was_sent, batch.turn or sys.maxsize))
        at_once = self._pace.at_once
        ahead = self._ahead if at_once == self._most else 0
        room = max(0, at_once + ahead - len(self.under_way))
        for batch in self._ready[:room]:
            self._let_go(batch)
        del self._ready[:room]

    def recall(self) -> None:
        """Take back the leave of what no thread has begun to send."""
        for batch in [*self.under_way]:
            with contextlib.suppress(queue.Empty):
                batch.leave.get_nowait()
                self.under_way.discard(batch)
                self._ready.append(batch)

    def turn_away(self) -> list[Batch]:
        """Give no leave any more; gives the batches that wanted it, which are out of work."""
        self.recall()
        refused = [*self._ready, *self._askers, *filter(None, [self._next])]
        self._ready, self._askers, self._next = [], [], None
        self.in_work.difference_update(refused)
        return refused

    def hear(self, seconds: float) -> Iterator[WorkerEvent]:
        """What happens within so many seconds, or before the next request may begin."""
        pause = self._pace.pause_left()
        for notice in self._desk.collect(min(pause, seconds) or seconds):
            if notice.batch in self.in_work:  # it was not abandoned
                self._follow(notice)
                yield notice

    @property
    def is_ahead(self) -> bool:
        """Whether the threads have more to send for a while."""
        return len(self.under_way) > self._most + self._ahead // 2

    @property
    def is_paused(self) -> bool:
        """Whether the service has asked for a time without requests."""
        return self._pace.pause_left() > 0

    def abandon(self) -> None:
        """Hear nothing more of what is in work."""
        self.in_work.clear()
        self.under_way.clear()

    def _let_go(self, batch: Batch) -> None:
        self.under_way.add(batch)
        batch.leave.put(True)
        if not batch.turn and self._crew is not None:
            batch.turn = next(self._turns)
            self._crew.start(batch)

    def _follow(self, notice: WorkerEvent) -> None:
        batch = notice.batch
        if batch in self.under_way:
            self.under_way.discard(batch)
            self._adapt(batch)
        if notice.news is EventKind.DONE:
            self.in_work.discard(batch)
        elif notice.news is EventKind.ASKS_LEAVE:
            self._askers.append(batch)

    def _adapt(self, batch: Batch) -> None:
        """Send more at the same time, or fewer, as the service takes it."""
        failure = batch.failure
        if batch.was_answered:
            self._pace.answered()
        elif isinstance(failure, Throttled):
            self._throttle(failure.retry_after or 0.0)
        elif isinstance(failure, ServiceError) and failure.retry_after is not None:
            self._throttle(failure.retry_after)

    def _throttle(self, retry_after: float) -> None:
        self._pace.throttled(retry_after)
        self.recall()
