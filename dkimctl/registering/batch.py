"""Entries on their way through the service, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from dkimctl import outcomes
from dkimctl.errors import DkimctlError, RequestRefused
from dkimctl.matching import match
from dkimctl.models import DomainSpec, Outcome, Registration, Result

if TYPE_CHECKING:
    from dkimctl.client import Reply  # the client brings the HTTP library; a rerun sends nothing

_TOLD = 3  # faults of one kind in one answer
# Of these nobody can tell what the service made of the entry; asked again, it may tell.
_UNSETTLED = frozenset((Outcome.UNKNOWN, Outcome.FAILED))


@dataclass(slots=True)
class Slot:
    """An entry's place in the output; `result` is None until it is known, and kept."""

    spec: DomainSpec
    result: Result | None = None


class Batch:
    """The entries of one request, and of its repetitions; each is known by its position.

    A thread sends it and notes what comes back. The registrar looks at it, and keeps what it
    finds, only while that thread waits, or is through with the batch.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self.specs = [slot.spec for slot in slots]
        self.positions = range(len(slots))
        self.is_started = False
        self.leave: SimpleQueue[bool] = SimpleQueue()  # whether the next request may be sent
        self.error: DkimctlError | None = None  # what ended it, and ends the run
        self.defect: Exception | None = None
        self.failure = ""  # why its last request has no usable answer
        self.was_answered = False  # its last request, usefully
        self.has_reached = False  # the service, perhaps
        self.faults: list[str] = []  # of the answers; to be told
        self.sending: Sequence[int] = ()  # what is in the request under way, or about to be
        self._ahead = set(self.positions)  # what is to be sent, perhaps once more
        self._results: list[Result | None] = [None] * len(slots)
        self._unsettled: set[int] = set()  # what the service may or may not have registered
        self._recorded: set[int] = set()  # what the ledger has an intent of

    def take(self, reply: Reply) -> None:
        """Note the answer to the request under way."""
        specs = [self.specs[position] for position in self.sending]
        matched = match(specs, reply.items)
        self.faults += _few([f"in the service's answer: {fault}" for fault in reply.faults])
        self.faults += _few(
            [
                f"the service answered for {_named(stray)}, which was not asked for"
                for stray in matched.strays
            ]
        )
        for position, spec, answer in zip(self.sending, specs, matched.answers, strict=True):
            if answer is None:
                result = outcomes.unanswered(spec, "the service's answer leaves it out")
            else:
                result = outcomes.of_answer(spec, answer)
            self._note(position, result)
        self.has_reached = True
        self.was_answered = any(matched.answers)
        self.failure = "" if self.was_answered else "the service's answer has none of the items"
        self.sending = ()

    def lose(self, reason: str) -> None:
        """Note that the request under way has no usable answer, and yet may have had effect."""
        for position in self.sending:
            self._note(position, outcomes.unanswered(self.specs[position], reason))
            self.has_reached = True
        self._be_unanswered(reason)

    def bounce(self, reason: str) -> None:
        """Note that the request under way had no effect."""
        self._be_unanswered(reason)

    def refuse(self, refusal: RequestRefused) -> None:
        """Note that the request under way, for one entry, was refused as a whole."""
        for position in self.sending:
            spec = self.specs[position]
            self._note(position, outcomes.of_refusal(spec, refusal.status, refusal.said))
        self.has_reached = self.was_answered = True
        self.sending = ()

    def ahead(self, positions: Iterable[int]) -> list[int]:
        """Those of `positions` that are to be sent, or may be sent once more."""
        return [position for position in positions if position in self._ahead]

    def abandon(self, reason: str) -> None:
        """Wait no longer for the request under way, if there is one, and send nothing more."""
        if self.sending:
            self.lose(reason)
        self.close()

    def close(self) -> None:
        """Send nothing more. What has no result then certainly is not registered by us."""
        self._ahead.clear()
        for position, spec in enumerate(self.specs):
            if self._results[position] is None:
                self._results[position] = outcomes.pending(spec, self.failure or "it was not sent")

    def news(self) -> list[tuple[Slot, Result]]:
        """The results that are final and not in their slots yet."""
        return [
            (slot, result)
            for position, (slot, result) in enumerate(zip(self.slots, self._results, strict=True))
            if slot.result is None and result is not None and position not in self._ahead
        ]

    def intents(self) -> tuple[list[DomainSpec], list[DomainSpec]]:
        """The entries whose intents the ledger may forget by now, and those it is to keep."""
        wanted = self._unsettled.union(self.sending)
        settled, begun = self._recorded - wanted, wanted - self._recorded
        self._recorded = wanted
        return [self.specs[p] for p in settled], [self.specs[p] for p in begun]

    def _note(self, position: int, result: Result) -> None:
        self._results[position] = result
        is_settled = result.outcome not in _UNSETTLED
        (self._unsettled.discard if is_settled else self._unsettled.add)(position)
        # Only with a selector can it be asked for again: that is answered with the data (409).
        if is_settled or self.specs[position].selector is None:
            self._ahead.discard(position)

    def _be_unanswered(self, reason: str) -> None:
        self.failure = reason
        self.was_answered = False
        self.sending = ()


def _few(faults: list[str]) -> list[str]:
    """The first of them: a hostile answer has room for hundreds of thousands."""
    more = len(faults) - _TOLD
    return [*faults[:_TOLD], f"and {more} more like that"] if more > 0 else faults


def _named(registration: Registration) -> str:
    selector = registration.selector
    return registration.sign_domain + (f" (selector {selector})" if selector else "")
