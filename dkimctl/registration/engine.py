"""Registers the entries of a file in batches, many at a time, and loses no answer.

The engine plans, writes the ledger and pushes results, all in one thread; worker threads send
batches and report over a channel.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dkimctl.errors import DkimctlError, Interrupted, LedgerError, ServiceError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import USABLE, DomainSpec, Outcome, RegistrationKey, Result, key_of
from dkimctl.registration import outcomes
from dkimctl.registration.batches import Batch, BatchBuilder, BatchEntry
from dkimctl.registration.limits import BatchScheduler, Limits, RunObserver, WorkerChannel
from dkimctl.registration.preflight import Planner, inspect_entries
from dkimctl.registration.retrying import BatchSender
from dkimctl.text import format_duration

if TYPE_CHECKING:
    from dkimctl.ledger.intents import Intent
    from dkimctl.registration.retrying import Send

_MAX_UNANSWERED = 5  # batches in a row without any usable answer; then the run ends
_TICK = 0.5  # seconds; the longest time between two calls of `observer.tick`
_GATHERING = 0.02  # seconds that an answer may wait for others, while there is enough to send
_MIN_WINDOW = 5_000  # entries that may wait for the first one without a result


class RegistrationEngine:
    """Registers the entries of a file, many batches at the same time.

    A batch's intent is in the ledger before its request is sent, and its answer before its results
    are yielded. `connect`, called once something is to be sent, returns the function that does.
    """

    def __init__(
        self,
        ledger: Ledger,
        planner: Planner,
        connect: Callable[[], Send],
        *,
        observer: RunObserver,
        warn: Callable[[str], None],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        channel: WorkerChannel | None = None,
    ) -> None:
        self._ledger = ledger
        self._planner = planner
        self._connect = connect
        self._observer = observer
        self._warn = warn
        self._limits = limits
        self._channel = channel or WorkerChannel()
        self._scheduler = BatchScheduler(limits.concurrency, clock, self._channel)
        self._error: DkimctlError | None = None  # ends the run; None: it goes on
        self._give_up_at = 0.0  # once it ends: until when answers are awaited
        self._unanswered = 0  # batches in a row
        self._clock = clock
        self._reported: list[Batch] = []  # those with something to persist
        self._defect: Exception | None = None
        self._is_asked_to_stop = False
        self._is_finished = False
        self._warned: set[str] = set()
        self.may_have_reached_service = False  # any request
        self.begun_early: list[str] = []  # names of new keys that sign already
        self.counts_if_nothing_sent: Counter[Outcome] = Counter()

    @property
    def stopped(self) -> DkimctlError | None:
        """What ended the run, also after its last result; what was not sent then is `pending`."""
        if self._is_finished and self._is_asked_to_stop:
            return self._error or Interrupted()
        return self._error

    def stop(self) -> None:
        """Send nothing more, and wait a while for what is in flight. Safe in a signal handler."""
        self._is_asked_to_stop = True
        self._channel.wake()

    def prepare(
        self, specs: Sequence[DomainSpec], now: datetime, dates: Mapping[str, str] | None = None
    ) -> list[tuple[str, str]]:
        """To be called first: returns warnings about what will be sent, each with its field.

        The ledger notes which keys the entries replace. Raises UsageError like `inspect_entries`.
        """
        replaced = {spec.key: spec.replaces for spec in specs if spec.replaces is not None}
        try:
            warnings = inspect_entries(specs, self._planner, now, dates)
            self._ledger.note_replacements(replaced)
        except LedgerError:
            self._ledger.check()  # a damaged ledger is quarantined
            raise
        return warnings

    def execute(self, specs: Iterable[DomainSpec]) -> Iterator[Result]:
        """One result for each entry, in order, as soon as those before are known.

        Raises what ended the run, if that was before anything was sent or yielded. Then
        `counts_if_nothing_sent` has the outcomes.
        """
        limits, unsent, has_results = self._limits, self.counts_if_nothing_sent, False
        self._builder = BatchBuilder(
            map(self._plan, specs),
            batch_size=limits.batch_size,
            window=max(_MIN_WINDOW, 4 * limits.concurrency * limits.batch_size),
        )
        try:
            while not self._builder.is_empty:
                self._advance()
                for result in self._builder.known_results():
                    is_moot = self.stopped and not self.may_have_reached_service
                    if unsent or (is_moot and not has_results):
                        unsent[result.outcome] += 1
                    else:
                        has_results = True
                        yield result
                if self._scheduler.in_work or (
                    self.stopped is None and self._scheduler.limiter.pause_left()
                ):
                    # Wait until workers report, and handle that.
                    self._handle_events(_TICK)
                    until = self._clock() + _GATHERING
                    while self._scheduler.has_backlog and (left := until - self._clock()) > 0:
                        self._handle_events(left)
                    self._observer.tick()
        finally:
            self._scheduler.close()
            self._is_finished = True
        if self._defect is not None:
            raise self._defect
        if unsent and self.stopped:
            raise self.stopped

    def left_unanswered(self, specs: Sequence[DomainSpec]) -> list[Intent]:
        """Requests of earlier runs that were never answered, and that `specs` do not repeat."""
        intents = self._ledger.intents()
        keys = {spec.key for spec in specs} if intents else set()
        # An entry without a selector stands for any of its domain.
        return [each for each in intents if keys.isdisjoint({each.key, key_of(each[0], None)})]

    def _plan(self, spec: DomainSpec) -> BatchEntry:
        try:
            planned = self._planner.plan_entry(spec)
            if isinstance(planned, DomainSpec):
                return BatchEntry(planned, is_in_doubt=self._planner.is_in_doubt(planned))
        except LedgerError as error:
            if self.stopped is None and not self.may_have_reached_service:
                try:
                    self._ledger.check()  # if it fails because it is damaged: quarantines it
                except LedgerError as damage:
                    self._end(damage)
            self._end_for_ledger(error)
            planned = outcomes.pending(spec, error.message)
        self._observer.settled([planned])
        return BatchEntry(spec, planned)

    def _advance(self) -> None:
        """Persist what was reported, and let go what may be sent next."""
        if self._is_asked_to_stop:
            self._is_asked_to_stop = False
            if self.stopped is None:
                self._end(Interrupted())
            elif not isinstance(self.stopped, Interrupted):
                self._warn(self.stopped.message)
                self._error, self._give_up_at = Interrupted(), self._clock()
        self._release()
        batches = []
        if self.stopped is None:
            batches = self._scheduler.next_to_record(self._builder.next_batch)
            try:
                if batches:
                    in_work = sum(len(batch.specs) for batch in self._scheduler.in_work)
                    self._ledger.require_disk_space(in_work)
                    if self._scheduler.pool is None:
                        self._ledger.check()
                        sender = BatchSender(self._connect(), self._channel, self._limits.max_wait)
                        self._scheduler.open(sender.process, self._warn)
                for batch in batches:
                    batch.in_flight = batch.to_send
            except LedgerError as error:  # then they are cancelled
                self._end_for_ledger(error)
            except DkimctlError as error:
                self._end(error)
        self._settle(batches)
        self._scheduler.ready += batches  # the ledger has their intents
        self._release()
        if self._error is not None and self._clock() >= self._give_up_at:
            # Stop waiting for what is in flight; its intents stay in the ledger.
            self._cancel_waiting()
            self.may_have_reached_service |= bool(self._scheduler.permitted)
            for batch in self._scheduler.in_work:
                reason = "no answer had arrived when the run was stopped"
                self._set_results(batch.results_if_abandoned(reason))
            self._scheduler.in_work.clear()  # what is still reported of them is ignored
            self._scheduler.permitted.clear()

    def _release(self) -> None:
        """Send what is recorded, as far as the limits allow; nothing once the run ends."""
        if self.stopped is None:
            self._scheduler.grant_permits()
        else:
            self._cancel_waiting()

    def _settle(self, to_record: Sequence[Batch]) -> None:
        """Persist what was reported and the intents of `to_record`; set the results."""
        reported = [(batch, batch.new_results()) for batch in dict.fromkeys(self._reported)]
        self._reported = []
        new_results = [result for _, results in reported for result in results]
        try:
            persist(self._ledger, new_results, [*(batch for batch, _ in reported), *to_record])
        except LedgerError as error:
            is_lost = any(batch.was_ever_answered and results for batch, results in reported)
            self._end_for_ledger(error, is_lost=is_lost)
        self._set_results(new_results)

    def _set_results(self, results: Sequence[tuple[BatchEntry, Result]]) -> None:
        for entry, result in results:
            entry.result = result
        self._observer.settled([result for _, result in results])

    def _cancel_waiting(self) -> None:
        """Send nothing more of what waits, and of what is still to come."""
        for batch in self._scheduler.remove_waiting():
            batch.cancel()
            self._reported.append(batch)  # the ledger may have its intents
        while unsent := self._builder.next_batch():
            unsent.finish()
            self._set_results(unsent.new_results())

    def _handle_events(self, seconds: float) -> None:
        for event in self._scheduler.collect(seconds):
            batch = event.batch
            self._reported.append(batch)
            self.may_have_reached_service |= batch.may_have_reached_service
            for warning in batch.warnings:
                self._warn(warning)
            batch.warnings.clear()
            self.begun_early += batch.begun_early
            batch.begun_early.clear()
            failure, most = batch.last_failure, self._limits.max_wait
            if isinstance(failure, ServiceError) and (asked := failure.retry_after or 0.0) > most:
                wait = f"it asks to wait {format_duration(asked)}, and --max-wait allows "
                wait += format_duration(most)
                hint = "run the same command again later, or with a longer --max-wait"
                self._end(ServiceError(f"{failure.message}; {wait}", hint=hint))
            if event.failure is not None:
                waiting = len(batch.still_open(batch.to_send))
                self._observer.waiting(waiting, event.seconds, event.failure.message)
            if event.is_done:
                self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        """End the run if `batch`, which is done, says so; take the largest size that it had."""
        self._defect = self._defect or batch.defect
        self._unanswered = 0 if batch.was_ever_answered else self._unanswered + 1
        if batch.defect is not None:
            self._end(DkimctlError("a defect in dkimctl"))
        elif batch.error is not None:
            self._end(batch.error)
        elif self._unanswered >= _MAX_UNANSWERED:
            reason = batch.last_failure.message if batch.last_failure else ""
            message = f"no usable answer to {self._unanswered} batches in a row: {reason}"
            hint = "run the same command again later; the answers so far are in the ledger"
            self._end(ServiceError(message, hint=hint))
        # Send no larger batches than the service accepts, once that is known.
        if size := batch.accepted_size():
            self._builder.batch_size = min(size, self._builder.batch_size)
            self._warn(
                f"the service does not accept {len(batch.specs)} domains at once: from now on "
                f"batches have {size}, as with --batch-size {size}"
            )

    def _end(self, error: DkimctlError) -> None:
        """End the run. What is in flight is still waited for, and persisted."""
        if self._error is None:
            self._error = error
            self._give_up_at = self._clock() + self._limits.grace
            self._channel.end_waits()
            self._scheduler.revoke_permits()
            if self._scheduler.permitted:
                self._observer.ending(len(self._scheduler.permitted), self._limits.grace)

    def _end_for_ledger(self, error: LedgerError, *, is_lost: bool = False) -> None:
        """End the run since the ledger fails; `is_lost`: it lacks answers that arrived."""
        message, hint = error.message, error.hint
        if is_lost:
            message += "; some answers of the service are not in the ledger"
            hint = f"save this output; {hint}"
            if self.stopped is not None and message not in self._warned:
                self._warned.add(message)
                self._warn(f"{message}; {hint}")
        self._end(ServiceError(message, hint=hint) if self.may_have_reached_service else error)


def persist(
    ledger: Ledger, new_results: Iterable[tuple[BatchEntry, Result]], batches: Iterable[Batch]
) -> None:
    """Record results and intents in one transaction, durable on return. Raises LedgerError."""
    answered = [result.registration for _, result in new_results if _is_persisted(ledger, result)]
    settled: list[RegistrationKey] = []
    begun: list[list[DomainSpec]] = []
    for batch in dict.fromkeys(batches):
        settled_specs, begun_specs = batch.take_intent_changes()
        settled += [spec.key for spec in settled_specs]
        begun.append(begun_specs)
    ledger.commit(answered=answered, settled=settled, begun=begun)


def _is_persisted(ledger: Ledger, result: Result) -> bool:
    if result.outcome not in (Outcome.UNUSABLE, Outcome.TAKEN):
        return result.outcome in USABLE
    # There is a registration, but its answer never replaces a record that the ledger has.
    key = result.registration.key
    known = ledger.of_domain(key.sign_domain)
    return not any(other.record for other in known if not key.selector or other.key == key)
