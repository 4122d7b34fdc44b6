"""Entries on their way through the service: gathered into batches, and what is known of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING

from dkimctl.errors import DkimctlError, RequestRefused, ServiceError, Throttled
from dkimctl.models import DomainSpec, Outcome, Result, named
from dkimctl.registration import outcomes

if TYPE_CHECKING:
    from dkimctl.client.wire import Reply  # a run that sends nothing does without msgspec

_MAX_WARNINGS = 3  # of one kind, for one answer


class BatchEntry:
    """An entry of the file. `is_in_doubt`: an earlier run sent it and got no answer."""

    __slots__ = ("is_in_doubt", "result", "spec")

    def __init__(
        self, spec: DomainSpec, result: Result | None = None, *, is_in_doubt: bool = False
    ) -> None:
        self.spec = spec
        self.result = result  # None until it is known and in the ledger
        self.is_in_doubt = is_in_doubt


class Batch:
    """The entries of one request and of its repetitions; each is known by its position.

    A worker thread owns the batch from the time it gets a permit until it reports back.
    """

    def __init__(self, entries: Sequence[BatchEntry]) -> None:
        self.entries = entries
        self.specs = [entry.spec for entry in entries]
        self.permit: SimpleQueue[bool] = SimpleQueue()  # whether `to_send` may be sent
        self.to_send: Sequence[int] = range(len(entries))
        self.in_flight: Sequence[int] = ()  # positions in the current request
        self.order = 0  # from 1, in the order in which threads take batches; 0: not taken yet
        self.was_sent = False
        self.error: DkimctlError | None = None  # ended this batch, and ends the run
        self.defect: Exception | None = None
        self.warnings: list[str] = []  # about the answers
        self.begun_early: list[str] = []  # names of keys that sign before they were to
        self.last_failure: DkimctlError | None = None  # why the last request has no usable answer
        self.was_ever_answered = False
        self.may_have_reached_service = False
        self.requested_wait = 0.0  # seconds that the service asked it to wait, in total
        self._largest_accepted = 0  # entries in the largest request not refused as a whole
        self._was_split = False
        self._attempts = [0] * len(entries)
        self._open = set(self.to_send)  # to be sent, perhaps again
        self._results: list[Result | None] = [None] * len(entries)
        self._unsettled = {number for number, entry in enumerate(entries) if entry.is_in_doubt}
        self._recorded = set(self._unsettled)  # the ledger has an intent of these

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be sent twice: every entry has a selector."""
        return all(spec.selector is not None for spec in self.specs)

    def take_reply(self, reply: Reply) -> None:
        """Record the answer to the current request."""
        specs = [self.specs[position] for position in self.in_flight]
        answers, strays = outcomes.match(specs, reply.items)
        self._warn([f"in the service's answer: {fault}" for fault in reply.faults])
        text = "the service answered for {}: not asked for, or twice"
        self._warn([text.format(named(stray)) for stray in strays])
        now = datetime.now(UTC)
        for position, spec, answer in zip(self.in_flight, specs, answers, strict=True):
            if answer is None:
                result = outcomes.unanswered(spec, "the service's answer leaves it out")
            else:
                result = outcomes.of_answer(spec, answer)._replace(answer=answer.code)
                if outcomes.begins_early(spec, answer, now):
                    self.begun_early.append(named(answer))
            self._set_result(position, result)
        self._largest_accepted = max(self._largest_accepted, len(specs))
        was_answered = not self._unsettled.issuperset(self.in_flight)
        self._end_request(None if was_answered else ServiceError("no answer has a usable item"))

    def mark_unknown(self, failure: DkimctlError) -> None:
        """The current request got no usable answer, but may have been processed."""
        for position in self.in_flight:
            self._set_result(position, outcomes.unanswered(self.specs[position], failure.message))
        self._end_request(failure)

    def mark_not_processed(self, failure: DkimctlError) -> None:
        """No effect; no attempt if the service says when to come back: --max-wait bounds that."""
        if not (isinstance(failure, Throttled) and failure.retry_after is not None):
            for position in self.in_flight:
                self._attempts[position] += 1
        self._end_request(failure, has_reached_service=False)

    def mark_refused(self, refusal: RequestRefused) -> Sequence[int]:
        """The current request was refused as a whole; returns what to send again in halves."""
        positions = self.in_flight
        self._was_split |= len(positions) > 1
        if len(positions) == 1:
            spec = self.specs[positions[0]]
            result = outcomes.of_refusal(spec, refusal.status, refusal.detail)
            self._set_result(positions[0], result._replace(answer=refusal.status))
        self._end_request(refusal, has_reached_service=len(positions) == 1)
        return positions if len(positions) > 1 else ()

    def still_open(self, positions: Iterable[int]) -> list[int]:
        """Those of `positions` that are to be sent, perhaps again."""
        return [position for position in positions if position in self._open]

    def attempts(self, positions: Iterable[int]) -> int:
        """The most attempts made for any of `positions` that is still open."""
        return max((self._attempts[position] for position in self.still_open(positions)), default=0)

    def finish(self) -> None:
        """Send nothing more. What has no result yet is certainly not registered by this run."""
        self._open.clear()
        reason = self.last_failure.message if self.last_failure else "it was not sent"
        for position, spec in enumerate(self.specs):
            if self._results[position] is None:
                make = outcomes.unanswered if position in self._unsettled else outcomes.pending
                self._results[position] = make(spec, reason)

    def cancel(self) -> None:
        """Send nothing more, also when a thread is about to."""
        self.in_flight = ()
        self.finish()
        self.permit.put(False)

    def new_results(self) -> list[tuple[BatchEntry, Result]]:
        """The results that are final and that their entries do not have yet."""
        return [
            (entry, result)
            for position, entry in enumerate(self.entries)
            if entry.result is None
            and (result := self._results[position]) is not None
            and position not in self._open
        ]

    def results_if_abandoned(self, reason: str) -> list[tuple[BatchEntry, Result]]:
        """Results for the unfinished entries; reads nothing that its thread may still change."""
        return [
            (entry, outcomes.unanswered(entry.spec, reason))
            if position in self._recorded
            else (entry, outcomes.pending(entry.spec, "it was not sent"))
            for position, entry in enumerate(self.entries)
            if entry.result is None
        ]

    def take_intent_changes(self) -> tuple[list[DomainSpec], list[DomainSpec]]:
        """Entries whose intents the ledger may drop, and those that need one."""
        wanted = self._unsettled.union(self.in_flight)
        settled, begun = self._recorded - wanted, wanted - self._recorded
        self._recorded = wanted
        return [self.specs[p] for p in settled], [self.specs[p] for p in begun]

    def accepted_size(self) -> int | None:
        """How many entries the service takes at once, if it refused more only for their number."""
        was_too_large = self._was_split and all(
            result is not None and result.outcome is not Outcome.INVALID for result in self._results
        )
        return self._largest_accepted or None if was_too_large else None

    def _set_result(self, position: int, result: Result) -> None:
        self._results[position] = result
        self._attempts[position] += 1
        # Else the service may or may not have registered the entry; asked again, it may tell.
        is_settled = result.outcome not in (Outcome.UNKNOWN, Outcome.FAILED)
        (self._unsettled.discard if is_settled else self._unsettled.add)(position)
        # Only with a selector can it be asked for again: that is answered with the data (409).
        if is_settled or self.specs[position].selector is None:
            self._open.discard(position)

    def _end_request(
        self, failure: DkimctlError | None, *, has_reached_service: bool = True
    ) -> None:
        self.last_failure, self.in_flight = failure, ()
        self.was_ever_answered |= failure is None
        self.may_have_reached_service |= has_reached_service

    def _warn(self, texts: list[str]) -> None:
        self.warnings += texts[:_MAX_WARNINGS]
        if (more := len(texts) - _MAX_WARNINGS) > 0:
            self.warnings.append(f"and {more} more like that")


class BatchBuilder:
    """Gathers entries into batches, and gives out results in the file's order.

    It reads at most `window` entries beyond the first one without a result. Entries whose selector
    the service chooses have batches of their own: only the others can be repeated safely.
    """

    def __init__(self, entries: Iterable[BatchEntry], *, batch_size: int, window: int) -> None:
        self._entries = iter(entries)
        self.batch_size = batch_size
        self._window = window
        self._waiting: deque[BatchEntry] = deque()  # in the file's order
        self._partial: dict[bool, list[BatchEntry]] = {True: [], False: []}
        self._is_exhausted = False

    @property
    def is_empty(self) -> bool:
        """Whether the result of every entry has been given out."""
        return self._is_exhausted and not self._waiting

    def next_batch(self) -> Batch | None:
        """The next entries to send; None until more results are known."""
        while len(self._waiting) < self._window:
            entry = next(self._entries, None)
            if entry is None:
                self._is_exhausted = True
                break
            self._waiting.append(entry)
            if entry.result is None:
                gathered = self._partial[entry.spec.selector is None]
                gathered.append(entry)
                if len(gathered) >= self.batch_size:
                    return self._take(gathered)
        if not self._is_exhausted and self._waiting[0].result is not None:
            return None  # first, the results that are known make room
        return next((self._take(entries) for entries in self._partial.values() if entries), None)

    def known_results(self) -> Iterator[Result]:
        """The results up to the first that is not known yet, each once."""
        while self._waiting and (result := self._waiting[0].result) is not None:
            self._waiting.popleft()
            yield result

    def _take(self, gathered: list[BatchEntry]) -> Batch:
        batch = Batch(gathered[: self.batch_size])
        del gathered[: self.batch_size]
        return batch
