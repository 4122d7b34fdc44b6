"""Entries on their way through the service, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from dkimctl.errors import DkimctlError, RequestRefused, ServiceError
from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result
from dkimctl.registration import outcomes
from dkimctl.registration.matching import match

if TYPE_CHECKING:
    from dkimctl.client.wire import (
        Reply,  # the client brings the HTTP library; a rerun sends nothing
    )

_TOLD = 3  # faults of one kind in one answer
# Of these nobody can tell what the service made of the entry; asked again, it may tell.
_UNSETTLED = frozenset((Outcome.UNKNOWN, Outcome.FAILED))


@dataclass(slots=True)
class Slot:
    """An entry's place in the output; `result` is None until it is known, and kept."""

    spec: DomainSpec
    result: Result | None = None
    is_in_doubt: bool = False  # an earlier run sent it, and has no answer


class Batch:
    """The entries of one request, and of its repetitions; each is known by its position.

    A thread has it from the time it gets leave to send until it tells what came of that. In
    between the registrar leaves it alone.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self.specs = [slot.spec for slot in slots]
        self.leave: SimpleQueue[bool] = SimpleQueue()  # whether `wanted` may be sent
        self.wanted: Sequence[int] = range(len(slots))  # what is to be sent next
        self.sending: Sequence[int] = ()  # what is in the request under way
        self.turn = 0  # from 1, in the order in which threads take them; 0: none has it to take
        self.was_sent = False  # its first request has left
        self.error: DkimctlError | None = None  # what ended it, and ends the run
        self.defect: Exception | None = None
        self.faults: list[str] = []  # of the answers; to be told
        self.failure: DkimctlError | None = None  # why its last request has no usable answer
        self.was_answered = False  # its last request, usefully
        self.has_answer = False  # any request of it, usefully
        self.has_reached = False  # the service, perhaps
        self.asked_wait = 0.0  # seconds that the service asked it to wait, in all
        self._largest_taken = 0  # entries, of the requests that were not refused as a whole
        self._was_split = False
        self._tries = [0] * len(slots)
        self._ahead = set(self.wanted)  # what is to be sent, perhaps once more
        self._results: list[Result | None] = [None] * len(slots)
        # What the service may or may not have registered.
        self._unsettled = {position for position, slot in enumerate(slots) if slot.is_in_doubt}
        self._recorded = set(self._unsettled)  # what the ledger has an intent of

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be sent a second time: every entry has a selector."""
        return all(spec.selector is not None for spec in self.specs)

    def take(self, reply: Reply) -> None:
        """Note the answer to the request under way."""
        specs = [self.specs[position] for position in self.sending]
        matched = match(specs, reply.items)
        self.faults += _few([f"in the service's answer: {fault}" for fault in reply.faults])
        self.faults += _few([_of_stray(found) for found in matched.strays])
        for position, spec, answer in zip(self.sending, specs, matched.answers, strict=True):
            if answer is None:
                result = outcomes.unanswered(spec, "the service's answer leaves it out")
            else:
                result = outcomes.of_answer(spec, answer)
            self._note(position, result)
        self._largest_taken = max(self._largest_taken, len(specs))
        self.has_reached = True
        self.was_answered = not self._unsettled.issuperset(self.sending)
        self.has_answer = self.has_answer or self.was_answered
        self.failure = None if self.was_answered else ServiceError("no answer has a usable item")
        self.sending = ()

    def lose(self, failure: DkimctlError) -> None:
        """Note that the request under way has no usable answer, and yet may have had effect."""
        for position in self.sending:
            self._note(position, outcomes.unanswered(self.specs[position], failure.message))
        self.has_reached = True
        self._be_unanswered(failure)

    def bounce(self, failure: DkimctlError) -> None:
        """Note that the request under way had no effect."""
        for position in self.sending:
            self._tries[position] += 1
        self._be_unanswered(failure)

    def withdraw(self, refusal: RequestRefused) -> Sequence[int]:
        """Note that the request under way was refused as a whole; gives its positions."""
        withdrawn = self.sending
        self._was_split = True
        self._be_unanswered(refusal)
        return withdrawn

    def refuse(self, refusal: RequestRefused) -> None:
        """Note that the request under way, for one entry, was refused as a whole."""
        for position in self.sending:
            spec = self.specs[position]
            self._note(position, outcomes.of_refusal(spec, refusal.status, refusal.said))
        self.has_reached = True
        self._be_unanswered(refusal)

    def ahead(self, positions: Iterable[int]) -> list[int]:
        """Those of `positions` that are to be sent, or may be sent once more."""
        return [position for position in positions if position in self._ahead]

    def tries(self, positions: Iterable[int]) -> int:
        """How often those of `positions` that are ahead were tried; the most of any."""
        return max((self._tries[position] for position in self.ahead(positions)), default=0)

    def close(self) -> None:
        """Send nothing more. What has no result then certainly is not registered by us."""
        self._ahead.clear()
        reason = self.failure.message if self.failure else "it was not sent"
        for position, spec in enumerate(self.specs):
            if self._results[position] is None:
                make = outcomes.unanswered if position in self._unsettled else outcomes.pending
                self._results[position] = make(spec, reason)

    def withhold(self) -> None:
        """Send nothing more, neither now nor when a thread comes to it."""
        self.sending = ()
        self.close()
        self.leave.put(False)

    def fresh(self) -> list[tuple[Slot, Result]]:
        """The results that are final and not in their slots yet."""
        return [
            (slot, result)
            for position, (slot, result) in enumerate(zip(self.slots, self._results, strict=True))
            if slot.result is None and result is not None and position not in self._ahead
        ]

    def abandoned(self, reason: str) -> list[tuple[Slot, Result]]:
        """What is to be said of entries without result if their thread is not waited for.

        It may be at work on them, so only what is the registrar's is looked at: in doubt is
        what the ledger has an intent of.
        """
        return [
            (slot, outcomes.unanswered(slot.spec, reason))
            if position in self._recorded
            else (slot, outcomes.pending(slot.spec, "it was not sent"))
            for position, slot in enumerate(self.slots)
            if slot.result is None
        ]

    def intents(self) -> tuple[list[DomainSpec], list[DomainSpec]]:
        """The entries whose intents the ledger may forget by now, and those it is to keep."""
        wanted = self._unsettled.union(self.sending)
        settled, begun = self._recorded - wanted, wanted - self._recorded
        self._recorded = wanted
        return [self.specs[p] for p in settled], [self.specs[p] for p in begun]

    def _note(self, position: int, result: Result) -> None:
        self._results[position] = result
        self._tries[position] += 1
        is_settled = result.outcome not in _UNSETTLED
        (self._unsettled.discard if is_settled else self._unsettled.add)(position)
        # Only with a selector can it be asked for again: that is answered with the data (409).
        if is_settled or self.specs[position].selector is None:
            self._ahead.discard(position)

    def size_taken(self) -> int | None:
        """How many entries the service takes at once, if it refused these only for their number."""
        found = self._was_split and all(
            result is not None and result.outcome is not Outcome.INVALID for result in self._results
        )
        return self._largest_taken or None if found else None

    def _be_unanswered(self, failure: DkimctlError) -> None:
        self.failure, self.was_answered, self.sending = failure, False, ()


def _few(faults: list[str]) -> list[str]:
    """The first of them: a hostile answer has room for hundreds of thousands."""
    more = len(faults) - _TOLD
    return [*faults[:_TOLD], f"and {more} more like that"] if more > 0 else faults


def _of_stray(found: Registration) -> str:
    selector = f" (selector {found.selector})" if found.selector else ""
    return f"the service answered for {found.sign_domain}{selector}: not asked for, or twice"
