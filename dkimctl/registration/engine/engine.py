"""The registrar: one thread that plans, keeps the ledger and gives out results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dkimctl.errors import DkimctlError, Interrupted, LedgerError, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Result
from dkimctl.registration import outcomes
from dkimctl.registration.engine.batch import Batch, Slot
from dkimctl.registration.engine.batch_builder import BatchBuilder
from dkimctl.registration.engine.channel import EventKind, WorkerChannel, WorkerEvent
from dkimctl.registration.engine.circuit_breaker import CircuitBreaker
from dkimctl.registration.engine.deadline import ShutdownDeadline
from dkimctl.registration.engine.limits import Limits, Watcher
from dkimctl.registration.engine.pacing import ConcurrencyLimiter
from dkimctl.registration.engine.persistence import keep
from dkimctl.registration.engine.scheduler import BatchScheduler
from dkimctl.registration.planning import Planner

if TYPE_CHECKING:
    from dkimctl.registration.engine.sending import Send

_TICK = 0.5  # seconds; at least so often `watch` hears of a run in which nothing happens
_GATHERING = 0.02  # seconds that answers may wait for others, while there is enough to send
_LEAST_WINDOW = 5_000  # entries that may wait for the first unknown one before them
_MOST_UNSEEN = 2_000  # entries that are sent between two looks at the disk


class Registrar:
    """Registers the entries of a file, many batches at the same time.

    `connect` gives the function that sends a batch, and is called once, when something is to
    be sent; `warn` is told of faults in the answers. A batch's intent is in the ledger before
    its request is sent, and its answer before its results are given out.

    `has_reached` tells whether any request may have reached the service.
    """

    def __init__(
        self,
        ledger: Ledger,
        planner: Planner,
        connect: Callable[[], Send],
        *,
        watch: Watcher,
        warn: Callable[[str], None],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        desk: WorkerChannel | None = None,
    ) -> None:
        self._ledger = ledger
        self._planner = planner
        self._connect = connect
        self._watch = watch
        self._warn = warn
        self._limits = limits
        self._desk = desk or WorkerChannel()
        self._traffic = BatchScheduler(
            limits.concurrency, ConcurrencyLimiter(limits.concurrency, clock), self._desk
        )
        self._ending = ShutdownDeadline(limits.grace, clock)
        self._clock = clock
        self._heard: list[Batch] = []  # those of which there is something to keep
        self._room = 0  # for the answers to so many entries, before the disk is looked at again
        self._judge = CircuitBreaker(limits.max_wait)
        self._defect: Exception | None = None
        self._is_asked_to_stop = False
        self._told: set[str] = set()  # what was warned of already
        self.has_reached = False

    @property
    def stopped(self) -> DkimctlError | None:
        """What ended the run early, if anything; what was not sent then is `pending`."""
        return self._ending.error

    def stop(self) -> None:
        """End the run early: send nothing more, and wait a while for what is under way.

        Safe in a signal handler.
        """
        self._is_asked_to_stop = True
        self._desk.wake()

    def run(self, specs: Iterable[DomainSpec]) -> Iterator[Result]:
        """Yield one result for each entry, in order, each as soon as those before it are known."""
        limits = self._limits
        self._intake = BatchBuilder(
            map(self._place, specs),
            batch_size=limits.batch_size,
            window=max(_LEAST_WINDOW, 4 * limits.concurrency * limits.batch_size),
        )
        while not self._intake.is_empty:
            self._advance()
            yield from self._intake.known()
            if self._traffic.in_work or (self.stopped is None and self._traffic.is_paused):
                self._listen()
        self._traffic.close()
        if self._defect is not None:
            raise self._defect

    def attend(self) -> None:
        """Hear what is answered, and keep it, but let nothing more go.

        For whoever draws the results of `run` and cannot take the next one yet.
        """
        if self._is_asked_to_stop:
            self._interrupt()
        if self._traffic.in_work:
            self._listen()
            self._settle()
        if self._ending.is_overdue:
            self._abandon()

    def _is_in_doubt(self, spec: DomainSpec) -> bool:
        """Whether an earlier run has sent this entry, and nobody knows what came of that."""
        intents = self._ledger.intents_of(spec.sign_domain)
        return bool(intents) and spec.key in {intent.key for intent in intents}

    def _place(self, spec: DomainSpec) -> Slot:
        try:
            placed = self._planner.place(spec)
            if isinstance(placed, DomainSpec):
                return Slot(placed, is_in_doubt=self._is_in_doubt(placed))
        except LedgerError as error:
            if self.stopped is None and not self.has_reached:
                self._examine()
            self._end_unkept(error)
            placed = outcomes.pending(spec, error.message)
        self._watch.settled([placed])
        return Slot(spec, placed)

    def _examine(self) -> None:
        """See whether the ledger fails because it is damaged: then it is set aside."""
        try:
            self._ledger.check()
        except LedgerError as error:
            self._end(error)

    def _advance(self) -> None:
        """Keep and give out what was heard, and let go what may be sent next."""
        if self._is_asked_to_stop:
            self._interrupt()
        self._release()
        recorded = self._to_record()
        for batch in recorded:
            batch.sending = batch.wanted
        self._settle(recorded)
        self._traffic.add_ready(recorded)
        self._release()
        if self._ending.is_overdue:
            self._abandon()

    def _release(self) -> None:
        """Let go what is recorded, as far as there is room; once the run is to end, nothing."""
        if self.stopped is None:
            self._traffic.proceed()
        else:
            self._turn_away()

    def _to_record(self) -> list[Batch]:
        """What may be sent now or soon, once there is a way to send it and room for its answers."""
        if self.stopped is not None:
            return []
        found = self._traffic.next_to_record(self._intake.next_batch)
        try:
            if found:
                self._prepare(sum(len(batch.wanted) for batch in found))
            return found
        except LedgerError as error:
            self._end_unkept(error)
        except DkimctlError as error:
            self._end(error)
        self._traffic.add_ready(found)  # to be turned away
        return []

    def _prepare(self, entries: int) -> None:
        self._room -= entries
        if self._room < 0:
            in_work = sum(len(batch.specs) for batch in self._traffic.in_work)
            self._room = min(self._ledger.require_room(in_work), _MOST_UNSEEN)
        if self._traffic.is_open:
            return
        self._ledger.check()
        send = self._connect()
        # Brings the HTTP library, without which a run that sends nothing is quicker.
        from dkimctl.registration.engine.sending import BatchSender

        self._traffic.open(BatchSender(send, self._desk, max_wait=self._limits.max_wait).settle)

    def _settle(self, recorded: Sequence[Batch] = ()) -> None:
        """Keep what was heard, and the intents of `recorded`; give out the results."""
        heard = [(batch, batch.fresh()) for batch in dict.fromkeys(self._heard)]
        self._heard = []
        fresh = [found for _, results in heard for found in results]
        try:
            keep(self._ledger, fresh, [*(batch for batch, _ in heard), *recorded])
        except LedgerError as error:
            answered = any(batch.has_answer and results for batch, results in heard)
            self._end_unkept(error, is_lost=answered)
        self._give_out(fresh)

    def _give_out(self, results: Sequence[tuple[Slot, Result]]) -> None:
        for slot, result in results:
            slot.result = result
        self._watch.settled([result for _, result in results])

    def _turn_away(self) -> None:
        """Send nothing more of what waits, and of what is still to come."""
        for batch in self._traffic.turn_away():
            batch.withhold()
            self._heard.append(batch)  # the ledger may have its intents
        while unsent := self._intake.next_batch():
            unsent.close()
            self._give_out(unsent.fresh())

    def _listen(self) -> None:
        """Wait until something happens, and hear what it is."""
        self._hear_all(_TICK)
        until = self._clock() + _GATHERING
        while self._traffic.is_ahead and (left := until - self._clock()) > 0:
            self._hear_all(left)
        self._watch.tick()

    def _hear_all(self, seconds: float) -> None:
        for notice in self._traffic.hear(seconds):
            self._hear(notice)

    def _hear(self, notice: WorkerEvent) -> None:
        batch = notice.batch
        self._heard.append(batch)
        self.has_reached = self.has_reached or batch.has_reached
        for fault in batch.faults:
            self._warn(fault)
        batch.faults.clear()
        self._end_if(self._judge.of_wait(batch))
        if notice.failure is not None:
            waiting = len(batch.ahead(batch.wanted))
            self._watch.waiting(waiting, notice.seconds, notice.failure.message)
        if notice.news is EventKind.DONE:
            self._defect = self._defect or batch.defect
            self._end_if(self._judge.of_result(batch))
            self._fit(batch)

    def _fit(self, batch: Batch) -> None:
        """Send no larger batches than the service takes, once that is known."""
        if size := batch.size_taken():
            self._intake.batch_size = min(size, self._intake.batch_size)
            self._warn(
                f"the service takes no {len(batch.specs)} domains at once: from now on batches "
                f"have {size}, as with --batch-size {size}"
            )

    def _end_if(self, error: DkimctlError | None) -> None:
        if error is not None:
            self._end(error)

    def _end(self, error: DkimctlError) -> None:
        """End the run. What is under way is still waited for, and kept."""
        if self._ending.begin(error):
            self._desk.end_waits()
            self._traffic.recall()
            if self._traffic.under_way:
                self._watch.ending(len(self._traffic.under_way), self._ending.grace)

    def _interrupt(self) -> None:
        self._is_asked_to_stop = False
        if self.stopped is None:
            self._end(Interrupted())
        elif not isinstance(self.stopped, Interrupted):
            self._warn(self.stopped.message)
            self._ending.hurry()

    def _end_unkept(self, error: LedgerError, *, is_lost: bool = False) -> None:
        """End the run since the ledger fails; `is_lost`: it lacks answers that came."""
        message, hint = error.message, error.hint
        if is_lost:
            message += "; not every answer of the service is kept"
            hint = f"save this output; {hint}"
            if self.stopped is not None and message not in self._told:
                self._told.add(message)
                self._warn(f"{message}; {hint}")
        self._end(ServiceError(message, hint=hint) if self.has_reached else error)

    def _abandon(self) -> None:
        """Wait no longer for what is under way; its intents stay in the ledger."""
        self._turn_away()
        self.has_reached = self.has_reached or bool(self._traffic.under_way)
        for batch in self._traffic.in_work:
            self._give_out(batch.abandoned("no answer had come when the run was stopped"))
        self._traffic.abandon()
