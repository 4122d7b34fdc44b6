"""The batches in work: which may be sent now, and what is heard of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dkimctl.errors import ServiceError, Throttled
from dkimctl.registering.batch import Batch
from dkimctl.registering.crew import Crew
from dkimctl.registering.desk import Desk, News, Notice
from dkimctl.registering.pacing import Pace


class Traffic:
    """At most `most` batches at threads, of which the pace says how many are under way.

    What the ledger has the intents of is `ready`, and sent once there is room. As many batches
    again are recorded ahead, so that none waits for the ledger to keep the answers before it;
    but of what cannot be sent a second time only so much as is sent at once, since a kill
    leaves whatever was recorded in doubt.
    """

    def __init__(self, most: int, pace: Pace, desk: Desk) -> None:
        self._most = most
        self._pace = pace
        self._desk = desk
        self._crew: Crew[Batch] | None = None
        self._askers: list[Batch] = []  # that wait for leave to send
        self._ready: list[Batch] = []
        self._next: Batch | None = None  # which is not to be recorded yet
        self._started = 0  # batches that have a thread
        self.in_work: set[Batch] = set()
        self.under_way: set[Batch] = set()

    @property
    def is_open(self) -> bool:
        return self._crew is not None

    def open(self, settle: Callable[[Batch], None]) -> None:
        """From now on threads have batches settled."""
        self._crew = Crew(self._most, settle)

    def close(self) -> None:
        if self._crew is not None:
            self._crew.dismiss()

    def next_to_record(self, next_batch: Callable[[], Batch | None]) -> list[Batch]:
        """What is to be sent now or soon: first what is sent again, then what is new."""
        again = sum(batch.is_started for batch in self._ready)
        room = self._pace.room(len(self.under_way) + again)
        found, self._askers = self._askers[:room], self._askers[room:]
        room = self._pace.room(len(self.under_way) + len(self._ready))
        while len(self.in_work) < 2 * self._most - 1:
            self._next = self._next or next_batch()
            is_now = len(found) < room and len(self.in_work) < self._most
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
        """Let go what is ready, as far as there is room."""
        room = self._pace.room(len(self.under_way))
        waiting = []
        # What has a thread goes first: nothing else may have one while it waits.
        for batch in sorted(self._ready, key=lambda batch: not batch.is_started):
            if room and (batch.is_started or self._started < self._most):
                self._let_go(batch)
                room -= 1
            else:
                waiting.append(batch)
        self._ready = waiting

    def turn_away(self) -> list[Batch]:
        """Let nothing more go; gives the batches of which nothing was ever sent."""
        unsent = [self._next] if self._next else []
        for batch in [*self._ready, *self._askers]:
            batch.sending = ()
            if batch.is_started:
                batch.leave.put(False)
            else:
                self.in_work.discard(batch)
                unsent.append(batch)
        self._next, self._ready, self._askers = None, [], []
        return unsent

    def hear(self, seconds: float) -> Iterator[Notice]:
        """What happens within so many seconds, or before the next request may begin."""
        pause = self._pace.pause_left()
        for notice in self._desk.collect(min(pause, seconds) or seconds):
            if notice.batch in self.in_work:  # it was not abandoned
                self._follow(notice)
                yield notice

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
        if not batch.is_started and self._crew is not None:
            batch.is_started = True
            self._started += 1
            self._crew.start(batch)

    def _follow(self, notice: Notice) -> None:
        batch = notice.batch
        if batch in self.under_way:
            self.under_way.discard(batch)
            self._adapt(batch)
        if notice.news is News.ASKS_LEAVE:
            self._askers.append(batch)
        elif notice.news is News.DONE:
            self.in_work.discard(batch)
            self._started -= 1

    def _adapt(self, batch: Batch) -> None:
        """Send more at the same time, or fewer, as the service takes it."""
        failure = batch.failure
        if batch.was_answered:
            self._pace.answered()
        elif isinstance(failure, Throttled):
            self._pace.throttled(failure.retry_after or 0.0)
        elif isinstance(failure, ServiceError) and failure.retry_after is not None:
            self._pace.throttled(failure.retry_after)
