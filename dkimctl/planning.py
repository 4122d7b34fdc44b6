"""What is already registered and what remains to be done, without asking the service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl import outcomes
from dkimctl.ledger import Ledger
from dkimctl.models import DomainSpec, Outcome, Result


def plan(specs: Iterable[DomainSpec], ledger: Ledger) -> Iterator[Result]:
    """What `register` would make of each entry, in order; nothing is sent."""
    for spec in specs:
        found = outcomes.standing(spec, ledger.of_domain(spec.sign_domain))
        if found is None:
            yield Result(outcomes.as_asked(spec), Outcome.PENDING)
        else:
            yield outcomes.of_registered(spec, found)
