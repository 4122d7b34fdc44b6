"""Register entries in batches and keep what the service answers in the ledger."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dkimctl import outcomes
from dkimctl.errors import DkimctlError, LedgerError, MaybeProcessed, RequestRefused, ServiceError
from dkimctl.ledger import Ledger
from dkimctl.matching import match
from dkimctl.models import DomainSpec, Outcome, Registration, Result

if TYPE_CHECKING:
    from dkimctl.client import Reply  # the client brings the HTTP library; a rerun sends nothing

    Send = Callable[[Sequence[DomainSpec]], Reply]

# Outcomes of which the ledger keeps the answer: a registration is there. One without a
# sound record never displaces what the ledger has.
_SOUND = frozenset((Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS))
_KEPT = _SOUND | {Outcome.UNUSABLE, Outcome.TAKEN}


@dataclass(slots=True)
class _Slot:
    """An entry's place in the output; `result` is None until it is known."""

    spec: DomainSpec
    result: Result | None = None


class Registrar:
    """Registers the entries of a file, one batch after another.

    `send` asks the service for one batch (Client.register behind a token); `warn` is told
    of faults in its answers. What the ledger already has is not sent, unless `refresh`.

    `stopped` is the error that ended the run early, if one did; entries that were not sent
    then are `failed`. `answered` tells whether any request may have reached the service.
    """

    def __init__(
        self,
        ledger: Ledger,
        send: Send,
        *,
        batch_size: int,
        refresh: bool = False,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._ledger = ledger
        self._send = send
        self._batch_size = batch_size
        self._refresh = refresh
        self._warn = warn
        self.stopped: DkimctlError | None = None
        self.answered = False

    def run(self, specs: Iterable[DomainSpec]) -> Iterator[Result]:
        """Yield one result for each entry, in order, each as soon as those before it are known."""
        waiting: deque[_Slot] = deque()
        # A batch never mixes entries whose selector the service chooses with others:
        # only a request without the former can be repeated safely.
        batches: dict[bool, list[_Slot]] = {True: [], False: []}
        for spec in specs:
            slot = self._place(spec) if self.stopped is None else _Slot(spec)
            waiting.append(slot)
            if slot.result is None:
                batch = batches[slot.spec.selector is None]
                batch.append(slot)
                if len(batch) >= self._batch_size:
                    self._settle(batch)
            yield from _known(waiting)
        for batch in batches.values():
            self._settle(batch)
        yield from _known(waiting)

    def _place(self, spec: DomainSpec) -> _Slot:
        """The entry's slot: with the ledger's result, or with what is to be sent."""
        try:
            found = outcomes.standing(spec, self._ledger.of_domain(spec.sign_domain))
        except LedgerError as error:
            self._stop_at(error)
            return _Slot(spec)
        if found is None:
            return _Slot(spec)
        if self._refresh and found.selector:
            return _Slot(spec._replace(selector=found.selector))
        return _Slot(spec, outcomes.of_registered(spec, found))

    def _settle(self, batch: list[_Slot]) -> None:
        """Send a batch, unless the run has stopped; fill its slots and empty it."""
        if not batch:
            return
        specs = [slot.spec for slot in batch]
        results = self._ask(specs) if self.stopped is None else _not_sent(specs)
        for slot, result in zip(batch, results, strict=True):
            slot.result = result
        batch.clear()

    def _ask(self, specs: list[DomainSpec]) -> list[Result]:
        try:
            reply = self._send(specs)
        except MaybeProcessed as error:
            results = [outcomes.unanswered(spec, error.message) for spec in specs]
        except RequestRefused as error:
            self._warn(f"{error.message}; {error.hint}")
            results = [outcomes.of_refusal(spec, error.status, error.said) for spec in specs]
        except DkimctlError as error:
            self.stopped = error
            return _not_sent(specs)
        else:
            results = self._take(specs, reply)
        self.answered = True
        return results

    def _take(self, specs: list[DomainSpec], reply: Reply) -> list[Result]:
        """The results of a batch, in its order, once the ledger has them."""
        for fault in reply.faults:
            self._warn(f"in the service's answer: {fault}")
        matched = match(specs, reply.items)
        for stray in matched.strays:
            self._warn(f"the service answered for {_named(stray)}, which was not asked for")
        results = [
            outcomes.unanswered(spec, "the service's answer leaves it out")
            if answer is None
            else outcomes.of_answer(spec, answer)
            for spec, answer in zip(specs, matched.answers, strict=True)
        ]
        self._keep(results)
        return results

    def _is_worth_keeping(self, result: Result) -> bool:
        if result.outcome not in _KEPT - _SOUND:
            return result.outcome in _SOUND
        registration = result.registration
        same = DomainSpec(registration.sign_domain, registration.selector)
        known = outcomes.standing(same, self._ledger.of_domain(same.sign_domain))
        return known is None or known.record is None

    def _keep(self, results: list[Result]) -> None:
        self.answered = True
        try:
            worth = [found.registration for found in results if self._is_worth_keeping(found)]
            self._ledger.record(worth)
        except LedgerError as error:
            self._stop_at(error)

    def _stop_at(self, error: LedgerError) -> None:
        """End the run; once something was sent, this is more than a LedgerError."""
        if not self.answered:
            self.stopped = error
            return
        self.stopped = ServiceError(
            f"{error.message}; not everything that the service answered may be kept",
            hint="save this output and mend the ledger; give the entries shown here their "
            "selectors before you run the same command again",
        )


def _known(waiting: deque[_Slot]) -> Iterator[Result]:
    """Take the results off the front, up to the first that is not known yet."""
    while waiting and (result := waiting[0].result) is not None:
        waiting.popleft()
        yield result


def _not_sent(specs: list[DomainSpec]) -> list[Result]:
    return [Result(outcomes.as_asked(spec), Outcome.FAILED, "it was not sent") for spec in specs]


def _named(registration: Registration) -> str:
    selector = registration.selector
    return registration.sign_domain + (f" (selector {selector})" if selector else "")
