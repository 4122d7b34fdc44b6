"""What the ledger is to know of batches: answers, and intents of requests."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Outcome, RegistrationKey, Result
from dkimctl.registration import outcomes
from dkimctl.registration.engine.batch import Batch, Slot

# Outcomes of which the ledger keeps the answer: a registration is there. One without a
# sound record never displaces what the ledger has.
_SOUND = frozenset((Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS))
_UNSOUND = frozenset((Outcome.UNUSABLE, Outcome.TAKEN))


def keep(ledger: Ledger, fresh: Iterable[tuple[Slot, Result]], batches: Iterable[Batch]) -> None:
    """Put fresh results into the ledger, and what `batches` have in doubt or are about to send.

    All of it in one transaction, durable on return. Raises LedgerError.
    """
    answered = [result.registration for _, result in fresh if _is_worth_keeping(ledger, result)]
    settled: list[RegistrationKey] = []
    begun: list[list[DomainSpec]] = []
    for batch in dict.fromkeys(batches):
        done, new = batch.intents()
        settled += [spec.key for spec in done]
        begun.append(new)
    ledger.commit(answered=answered, settled=settled, begun=begun)


def _is_worth_keeping(ledger: Ledger, result: Result) -> bool:
    if result.outcome not in _UNSOUND:
        return result.outcome in _SOUND
    registration = result.registration
    same = DomainSpec(registration.sign_domain, registration.selector)
    known = outcomes.standing(same, ledger.of_domain(same.sign_domain))
    return known is None or known.record is None
