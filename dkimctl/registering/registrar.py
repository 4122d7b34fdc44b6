"""The registrar: one thread that plans, keeps the ledger and gives out results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from dkimctl import outcomes
from dkimctl.errors import DkimctlError, Interrupted, LedgerError, ServiceError, Throttled
from dkimctl.ledger import Ledger
from dkimctl.models import DomainSpec, Result
from dkimctl.planning import Planner
from dkimctl.registering.batch import Batch, Slot
from dkimctl.registering.crew import Crew
from dkimctl.registering.desk import Desk, News, Notice
from dkimctl.registering.intake import Intake
from dkimctl.registering.keeping import keep
from dkimctl.registering.pacing import Pace

if TYPE_CHECKING:
    from dkimctl.registering.dispatching import Send

_TICK = 0.5  # seconds; at least so often `watch` hears of a run in which nothing happens
_LEAST_WINDOW = 5_000  # entries that may wait for the first unknown one before them
_GIVE_UP_AFTER = 5  # batches in a row without any usable answer


class Watcher(Protocol):
    """Who is told how a run goes on. Called in the thread that runs it."""

    def settled(self, results: Sequence[Result]) -> None:
        """These entries have their results; a batch's at once, in no order."""

    def waiting(self, entries: int, seconds: float, reason: str) -> None:
        """So many entries wait so long before they are sent again."""

    def ending(self, requests: int, seconds: float) -> None:
        """The run ends early, but waits so long at most for the answers to so many requests."""

    def tick(self) -> None:
        """Time has passed."""


class Registrar:
    """Registers the entries of a file, `concurrency` batches at the same time.

    `connect` gives the function that sends a batch, and is called once, when something is to
    be sent; `warn` is told of faults in the answers. A batch's intent is in the ledger before
    its request is sent, and its answer before its results are given out. `max_wait` bounds the
    seconds that a request waits because the service asks it to, `grace` those that a run which
    is stopped waits for its last answers.

    `stopped` is the error that ended the run early, if one did; what was not sent then is
    `pending`. `has_reached` tells whether any request may have reached the service.
    """

    def __init__(
        self,
        ledger: Ledger,
        planner: Planner,
        connect: Callable[[], Send],
        *,
        watch: Watcher,
        warn: Callable[[str], None],
        batch_size: int,
        concurrency: int,
        max_wait: float,
        grace: float,
        clock: Callable[[], float] = time.monotonic,
        desk: Desk | None = None,
    ) -> None:
        self._ledger = ledger
        self._planner = planner
        self._connect = connect
        self._watch = watch
        self._warn = warn
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._max_wait = max_wait
        self._grace = grace
        self._clock = clock
        self._desk = desk or Desk()
        self._pace = Pace(concurrency, clock)
        self._crew: Crew[Batch] | None = None
        self._in_work: set[Batch] = set()
        self._sending: set[Batch] = set()  # those of which a request is under way
        self._askers: list[Batch] = []  # those that wait for leave to send
        self._heard: list[Batch] = []  # those of which there is something to keep
        self._unanswered = 0  # batches in a row
        self._deadline = 0.0  # once stopped: until then what is under way is waited for
        self._is_asked_to_stop = False
        self.stopped: DkimctlError | None = None
        self.has_reached = False

    def stop(self) -> None:
        """End the run early: send nothing more, and wait a while for what is under way.

        Safe in a signal handler.
        """
        self._is_asked_to_stop = True
        self._desk.wake()

    def run(self, specs: Iterable[DomainSpec]) -> Iterator[Result]:
        """Yield one result for each entry, in order, each as soon as those before it are known."""
        window = max(_LEAST_WINDOW, 4 * self._concurrency * self._batch_size)
        slots = map(self._place, specs)
        intake = Intake(slots, batch_size=self._batch_size, window=window)
        while not intake.is_empty:
            self._advance(intake)
            yield from intake.known()
            if self._in_work or self._pace.pause_left():
                self._collect()
        if self._crew is not None:
            self._crew.dismiss()

    def _place(self, spec: DomainSpec) -> Slot:
        try:
            placed = self._planner.place(spec)
        except LedgerError as error:
            self._end_unkept(error)
            placed = outcomes.pending(spec, error.message)
        if isinstance(placed, DomainSpec):
            return Slot(placed)
        self._watch.settled([placed])
        return Slot(spec, placed)

    def _advance(self, intake: Intake) -> None:
        """Keep what was heard, give it out, and let go what may be sent next."""
        if self._is_asked_to_stop:
            self._end(Interrupted())
        heard, self._heard = self._heard, []
        leaving = self._prepared(intake)
        try:
            keep(self._ledger, [*heard, *leaving])
        except LedgerError as error:
            self._end_unkept(error, is_lost=any(batch.news() for batch in heard))
        for batch in heard:
            self._give_out(batch)
        for batch in leaving:
            self._answer(batch)
        if self.stopped:
            self._turn_away(intake)

    def _prepared(self, intake: Intake) -> list[Batch]:
        """What may be sent now, once there is a way to send it and room for its answers."""
        leaving = [] if self.stopped else self._next_batches(intake)
        if not leaving:
            return []
        try:
            self._ledger.require_room(sum(len(batch.specs) for batch in self._in_work))
            if self._crew is None:
                self._crew = self._open_crew()
        except LedgerError as error:
            self._end_unkept(error)
        except DkimctlError as error:
            self._end(error)
        if self.stopped:
            for batch in leaving:
                self._answer(batch)
            return []
        return leaving

    def _open_crew(self) -> Crew[Batch]:
        self._ledger.check()
        send = self._connect()
        # Brings the HTTP library, without which a run that sends nothing is quicker.
        from dkimctl.registering.dispatching import Dispatcher

        dispatcher = Dispatcher(send, self._desk, max_wait=self._max_wait)
        return Crew(self._concurrency, dispatcher.settle)

    def _next_batches(self, intake: Intake) -> list[Batch]:
        """What may be sent now: first what is sent again, then what is new."""
        room = self._pace.room(len(self._sending))
        leaving, self._askers = self._askers[:room], self._askers[room:]
        while len(leaving) < room and len(self._in_work) < self._concurrency:
            batch = intake.next_batch()
            if batch is None:
                break
            batch.sending = batch.positions
            self._in_work.add(batch)
            leaving.append(batch)
        return leaving

    def _give_out(self, batch: Batch) -> None:
        news = batch.news()
        for slot, result in news:
            slot.result = result
        self._watch.settled([result for _, result in news])

    def _answer(self, batch: Batch) -> None:
        """Let a batch go, or not, now that the run has been stopped."""
        is_new = not batch.is_started
        batch.is_started = True
        if self.stopped is None:
            self._sending.add(batch)
            batch.leave.put(True)
            if is_new and self._crew is not None:
                self._crew.start(batch)
        elif is_new:
            self._in_work.discard(batch)
            batch.sending = ()
            batch.close()
            self._give_out(batch)
        else:
            batch.leave.put(False)

    def _turn_away(self, intake: Intake) -> None:
        """Send nothing more of what waits, and of what is still to come."""
        for batch in self._askers:
            batch.leave.put(False)
        self._askers.clear()
        while unsent := intake.next_batch():
            unsent.close()
            self._give_out(unsent)

    def _collect(self) -> None:
        """Wait until something happens, and hear what it is."""
        pause = self._pace.pause_left()
        for notice in self._desk.collect(min(pause, _TICK) or _TICK):
            self._hear(notice)
        self._watch.tick()
        if self.stopped and self._clock() > self._deadline:
            self._abandon()

    def _hear(self, notice: Notice) -> None:
        batch = notice.batch
        if batch in self._sending:
            self._sending.discard(batch)
            self._adapt(batch, notice.failure)
        self._heard.append(batch)
        self.has_reached = self.has_reached or batch.has_reached
        self._tell(batch)
        match notice.news:
            case News.ASKS_LEAVE:
                self._askers.append(batch)
            case News.WAITS:
                waiting = len(batch.ahead(batch.positions))
                self._watch.waiting(waiting, notice.seconds, notice.reason)
            case News.DONE:
                self._in_work.discard(batch)
                self._judge(batch)

    def _adapt(self, batch: Batch, failure: ServiceError | None) -> None:
        """Send more at the same time, or fewer, as the service takes it."""
        if batch.was_answered:
            self._pace.answered()
        elif isinstance(failure, Throttled):
            self._pace.throttled(failure.retry_after or 0.0)

    def _tell(self, batch: Batch) -> None:
        for fault in batch.faults:
            self._warn(fault)
        batch.faults.clear()

    def _judge(self, batch: Batch) -> None:
        """Whether what became of a batch is to end the run."""
        if batch.defect is not None:
            raise batch.defect
        if batch.error is not None:
            self._end(batch.error)
        self._unanswered = 0 if batch.was_answered else self._unanswered + 1
        if self._unanswered == _GIVE_UP_AFTER:
            self._end(
                ServiceError(
                    f"no usable answer to {_GIVE_UP_AFTER} batches in a row: {batch.failure}",
                    hint="run the same command again later; what is answered is kept",
                )
            )

    def _end(self, error: DkimctlError) -> None:
        """End the run. What is under way is still waited for, and kept."""
        if self.stopped is not None:
            return
        self.stopped = error
        self._deadline = self._clock() + self._grace
        self._desk.end_waits()
        if self._sending:
            self._watch.ending(len(self._sending), self._grace)

    def _end_unkept(self, error: LedgerError, *, is_lost: bool = False) -> None:
        """End the run since the ledger fails; `is_lost` tells whether it lacks an answer now."""
        message, hint = error.message, error.hint
        if is_lost:
            message += "; not every answer of the service is kept"
            hint = f"save this output; {hint}"
            if self.stopped is not None:
                self._warn(message)
        self._end(ServiceError(message, hint=hint) if self.has_reached else error)

    def _abandon(self) -> None:
        """Wait no longer for what is under way; its intents stay in the ledger."""
        for batch in self._in_work:
            batch.abandon("no answer had come when the run was stopped")
            self._give_out(batch)
        self._in_work.clear()
