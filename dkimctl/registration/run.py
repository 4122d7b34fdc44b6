"""One run of `register` over a file: what is sent, and what earlier runs left unanswered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dkimctl.errors import DkimctlError, LedgerError
from dkimctl.models.registration import DomainSpec, Outcome, Result, key_of
from dkimctl.registration.preflight import inspect_entries

if TYPE_CHECKING:
    from dkimctl.ledger.intents import Intent
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.registration.engine.limits import Limits, RunObserver
    from dkimctl.registration.engine.retrying import Send
    from dkimctl.registration.planning import Planner


class RegistrationRun:
    """Registers `specs`, and pushes one result for each.

    `connect` returns what sends a batch; it is called once, when there is something to send.
    """

    def __init__(
        self,
        specs: Sequence[DomainSpec],
        ledger: Ledger,
        planner: Planner,
        connect: Callable[[], Send],
        *,
        observer: RunObserver,
        warn: Callable[[str], None],
        limits: Limits,
    ) -> None:
        from dkimctl.registration.engine.engine import RegistrationEngine  # a plan needs none

        self.counts_if_nothing_sent: Counter[Outcome] = Counter()
        self._specs = specs
        self._ledger = ledger
        self._planner = planner
        self._engine = RegistrationEngine(
            ledger, planner, connect, observer=observer, warn=warn, limits=limits
        )

    @property
    def stopped(self) -> DkimctlError | None:
        """What ended the run early, if anything."""
        return self._engine.stopped

    @property
    def begun_early(self) -> Sequence[str]:
        """The names of new keys that sign already, although they state a later start."""
        return self._engine.begun_early

    def prepare(self, now: datetime) -> list[str]:
        """To be called first: returns warnings about what will be sent.

        The ledger notes which keys the entries replace, also those that are registered already.
        Raises UsageError like `inspect_entries`, and LedgerError.
        """
        replaced = {spec.key: spec.replaces for spec in self._specs if spec.replaces is not None}
        try:
            texts = inspect_entries(self._specs, self._planner, now)
            self._ledger.note_replacements(replaced)
        except LedgerError:
            self._ledger.check()  # a damaged ledger is quarantined
            raise
        return texts

    def stop(self) -> None:
        """End the run early; safe in a signal handler."""
        self._engine.stop()

    def execute(self, emit: Callable[[Result], None]) -> None:
        """Push one result for each entry to `emit`, in the file's order.

        Raises what ended the run, if that was before anything was sent or emitted. Then
        `counts_if_nothing_sent` has the outcomes.
        """
        unsent = self.counts_if_nothing_sent
        has_emitted = False

        def emit_unless_moot(result: Result) -> None:
            nonlocal has_emitted
            is_moot = self.stopped and not self._engine.may_have_reached_service
            if unsent or (is_moot and not has_emitted):
                unsent[result.outcome] += 1
            else:
                has_emitted = True
                emit(result)

        self._engine.run(self._specs, emit_unless_moot)
        if unsent and self.stopped:
            raise self.stopped

    def left_unanswered(self) -> list[Intent]:
        """Requests of earlier runs that were never answered, and that this file does not repeat."""
        intents = self._ledger.intents()
        if not intents:
            return []
        keys = {spec.key for spec in self._specs}
        return [
            intent
            for intent in intents
            # An entry without a selector stands for any of its domain.
            if keys.isdisjoint({intent.key, key_of(intent.sign_domain, None)})
        ]


def assign_from(
    template: str | None, specs: Sequence[DomainSpec], now: datetime
) -> Callable[[DomainSpec], DomainSpec]:
    """What gives entries a selector by `--assign-selector`.

    Raises UsageError for a template that is invalid, or does not fit one of `specs`.
    """
    if template is None:
        return lambda spec: spec
    from dkimctl.specs.selector_template import SelectorTemplate

    selectors = SelectorTemplate(template, now)
    selectors.check(specs)
    return selectors.assign


def record_names(specs: Sequence[DomainSpec]) -> Iterator[str]:
    """The FQDN of each record; where the selector is not known yet, the name above it."""
    for spec in specs:
        parent = f"_domainkey.{spec.sign_domain}"
        yield parent if spec.selector is None else f"{spec.selector}.{parent}"
