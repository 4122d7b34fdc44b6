"""What the ledger keeps of batches: answers, and intents of requests."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import USABLE, DomainSpec, Outcome, RegistrationKey, Result
from dkimctl.registration.engine.batches import Batch, Entry

# There is a registration, but its answer never replaces a record that the ledger has.
_WITHOUT_USABLE_RECORD = frozenset((Outcome.UNUSABLE, Outcome.TAKEN))


def persist(
    ledger: Ledger, new_results: Iterable[tuple[Entry, Result]], batches: Iterable[Batch]
) -> None:
    """Put new results into the ledger, and the intents of `batches`.

    All of it in one transaction, durable on return. Raises LedgerError.
    """
    answered = [result.registration for _, result in new_results if _is_persisted(ledger, result)]
    settled: list[RegistrationKey] = []
    begun: list[list[DomainSpec]] = []
    for batch in dict.fromkeys(batches):
        changes = batch.take_intent_changes()
        settled += [spec.key for spec in changes.settled]
        begun.append(changes.begun)
    ledger.commit(answered=answered, settled=settled, begun=begun)


def _is_persisted(ledger: Ledger, result: Result) -> bool:
    if result.outcome not in _WITHOUT_USABLE_RECORD:
        return result.outcome in USABLE
    key = result.registration.key
    known = ledger.of_domain(key.sign_domain)
    return not any(one.record for one in known if not key.selector or one.key == key)
