"""What is already registered and what remains to be done, without asking the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dkimctl.ledger.intents import Intent
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Registration, Result
from dkimctl.registration import outcomes

_UNSURE = "it may be registered under a selector that the service chose"


class Planner:
    """Decides from the ledger what becomes of each entry.

    `assign` gives a selector to entries that have none. `refresh` asks again for what the
    ledger has, `retry_unknown` for entries of which a request without selector went unanswered.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        assign: Callable[[DomainSpec], DomainSpec] = lambda spec: spec,
        refresh: bool = False,
        retry_unknown: bool = False,
    ) -> None:
        self._ledger = ledger
        self._assign = assign
        self._refresh = refresh
        self._retry_unknown = retry_unknown

    def place(self, spec: DomainSpec) -> DomainSpec | Result:
        """The entry as it is to be sent, or its result where nothing is to be sent."""
        registrations = self._ledger.of_domain(spec.sign_domain)
        if registrations and (found := outcomes.standing(spec, registrations)):
            return self._place_registered(spec, found)
        return spec if spec.selector is not None else self._place_without_selector(spec)

    def _place_registered(self, spec: DomainSpec, found: Registration) -> DomainSpec | Result:
        if self._refresh and found.selector:
            return spec._replace(selector=found.selector)
        return outcomes.of_registered(spec, found)

    def _place_without_selector(self, spec: DomainSpec) -> DomainSpec | Result:
        """Whatever was sent for the domain before is not to be registered a second time."""
        intents = self._ledger.intents_of(spec.sign_domain)
        for intent in intents:
            if intent.selector is not None:  # asked again with it, the service tells
                return spec._replace(selector=intent.selector)
        if (doubt := self._doubt(intents)) and not self._retry_unknown:
            return outcomes.unanswered(spec, doubt)
        return self._assign(spec)

    def _doubt(self, intents: Sequence[Intent]) -> str:
        if intents:
            return f"sent at {intents[0].sent_at}, and never answered: {_UNSURE}"
        if (quarantined := self._ledger.quarantined) is not None:
            return (
                f"{_UNSURE}: the damaged ledger {quarantined.name} may have it "
                "(once settled, move it away)"
            )
        return ""


def plan(specs: Iterable[DomainSpec], planner: Planner) -> Iterator[Result]:
    """What `register` would make of each entry, in order; nothing is sent."""
    for spec in specs:
        placed = planner.place(spec)
        yield placed if isinstance(placed, Result) else outcomes.pending(placed)
