"""The batches in work: which may be sent now, and what is heard of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dkimctl.errors import ServiceError, Throttled
from dkimctl.registering.batch import Batch
from dkimctl.registering.crew import Crew
from dkimctl.registering.desk import Desk, News, Notice
from dkimctl.registering.pacing import Pace


class Traffic:
    """At most `most` batches in work, of which the pace says how many are under way.

    Each of `next_to_send` is then let go or refused.
    """

    def __init__(self, most: int, pace: Pace, desk: Desk) -> None:
        self._most = most
        self._pace = pace
        self._desk = desk
        self._crew: Crew[Batch] | None = None
        self._askers: list[Batch] = []  # that wait for leave to send
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

    def next_to_send(self, next_batch: Callable[[], Batch | None]) -> list[Batch]:
        """What may be sent now: first what is sent again, then what is new."""
        room = self._pace.room(len(self.under_way))
        found, self._askers = self._askers[:room], self._askers[room:]
        while len(found) < room and len(self.in_work) < self._most:
            batch = next_batch()
            if batch is None:
                break
            self.in_work.add(batch)
            found.append(batch)
        return found

    def let_go(self, batch: Batch) -> None:
        self.under_way.add(batch)
        batch.leave.put(True)
        if not batch.is_started and self._crew is not None:
            batch.is_started = True
            self._crew.start(batch)

    def refuse(self, batch: Batch) -> None:
        """Have nothing more of `batch` sent; one that was never started is out of work."""
        batch.leave.put(False)
        if not batch.is_started:
            self.in_work.discard(batch)

    def refuse_askers(self) -> None:
        for batch in self._askers:
            batch.leave.put(False)
        self._askers.clear()

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

    def _follow(self, notice: Notice) -> None:
        batch = notice.batch
        if batch in self.under_way:
            self.under_way.discard(batch)
            self._adapt(batch)
        if notice.news is News.ASKS_LEAVE:
            self._askers.append(batch)
        elif notice.news is News.DONE:
            self.in_work.discard(batch)

    def _adapt(self, batch: Batch) -> None:
        """Send more at the same time, or fewer, as the service takes it."""
        failure = batch.failure
        if batch.was_answered:
            self._pace.answered()
        elif isinstance(failure, Throttled):
            self._pace.throttled(failure.retry_after or 0.0)
        elif isinstance(failure, ServiceError) and failure.retry_after is not None:
            self._pace.throttled(failure.retry_after)
