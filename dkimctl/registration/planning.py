"""Which entries are registered already, and which must be sent; the service is not asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec, Registration, Result
from dkimctl.registration import outcomes
from dkimctl.specs.fields import parse_start_date

if TYPE_CHECKING:  # `register --help` needs no database
    from dkimctl.ledger.intents import Intent
    from dkimctl.ledger.ledger import Ledger

_UNSURE = "it may be registered under a selector that the service chose"


class Planner:
    """Decides from the ledger whether an entry must be sent.

    `assign` gives a selector to entries that have none. `refresh` sends entries again that are
    in the ledger, `retry_unknown` those whose request without selector was never answered. `now`
    decides which key of a domain is the current one.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        assign: Callable[[DomainSpec], DomainSpec] = lambda spec: spec,
        refresh: bool = False,
        retry_unknown: bool = False,
        now: datetime | None = None,
    ) -> None:
        self._ledger = ledger
        self._assign = assign
        self._refresh = refresh
        self._retry_unknown = retry_unknown
        self._now = now or datetime.now(UTC)

    def plan_entry(self, spec: DomainSpec) -> DomainSpec | Result:
        """The entry as it must be sent, or its result if nothing must be sent."""
        registrations = self._ledger.of_domain(spec.sign_domain)
        if registrations and (known := outcomes.registration_for(spec, registrations, self._now)):
            return self._plan_registered(spec, known)
        return spec if spec.selector is not None else self._plan_without_selector(spec)

    def new_entries(self, specs: Iterable[DomainSpec]) -> list[DomainSpec]:
        """Those of `specs`, of which there may be many, that must be sent and are not known yet."""
        known = self._ledger.known_keys()
        return [
            spec
            for spec in specs
            if spec.key not in known and isinstance(self.plan_entry(spec), DomainSpec)
        ]

    def is_in_doubt(self, spec: DomainSpec) -> bool:
        """Whether an earlier run sent this entry and got no answer."""
        intents = self._ledger.intents_of(spec.sign_domain)
        return bool(intents) and spec.key in {intent.key for intent in intents}

    def _plan_registered(self, spec: DomainSpec, known: Registration) -> DomainSpec | Result:
        if not (self._refresh and known.selector):
            return outcomes.of_registered(spec, known)
        if spec.selector is None:
            return _as_registered(spec, known)
        return spec._replace(selector=known.selector)

    def _plan_without_selector(self, spec: DomainSpec) -> DomainSpec | Result:
        """Nothing that was sent for the domain before may be registered a second time."""
        intents = self._ledger.intents_of(spec.sign_domain)
        for intent in intents:
            if intent.selector is not None:  # sent again with it, the service gives its record
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


def _as_registered(spec: DomainSpec, known: Registration) -> DomainSpec:
    """An entry without selector, as a request for the key that it stands for."""
    try:
        start_date = parse_start_date(known.start_date or "")
    except UsageError:  # such as one with seconds
        start_date = None
    return spec._replace(selector=known.selector, key_len=known.key_len, start_date=start_date)


def plan(specs: Iterable[DomainSpec], planner: Planner) -> Iterator[Result]:
    """The result that `register` would have for each entry, in order; nothing is sent."""
    for spec in specs:
        planned = planner.plan_entry(spec)
        yield planned if isinstance(planned, Result) else outcomes.pending(planned)
