"""What the ledger takes over of a saved result, by what it holds already."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models.registration import Outcome, Registration, Result
from dkimctl.specs.names import parse_domain

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger

_REGISTERED = frozenset({Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS, Outcome.UNUSABLE})


class ImportPlan(NamedTuple):
    """`new` is to be recorded; of what was `there` already, the number.

    `conflicts` are registrations of which the ledger, or an item before, has another record.
    `left_out` are the results that tell of no registration of ours.
    """

    new: list[Registration]
    there: int
    conflicts: list[Result]
    left_out: list[Result]


def import_results(ledger: "Ledger", results: Iterable[Result]) -> ImportPlan:
    """Record the new registrations among `results`; returns what became of all of them."""
    plan = take_over(results, ledger.all())
    ledger.record(plan.new)
    return plan


def take_over(results: Iterable[Result], known: Iterable[Registration]) -> ImportPlan:
    """Sort `results` by what becomes of them in a ledger that holds `known`.

    What is known stays, and of two items for one name the first counts.
    """
    held = {found.key: found for found in known}
    taken = ImportPlan([], 0, [], [])
    there = 0
    for result in map(_checked, results):
        found = result.registration
        other = held.get(found.key)
        if result.outcome not in _REGISTERED or found.record is None:
            taken.left_out.append(result)
        elif other is None or not (other.record or other.is_taken):
            taken.new.append(found)
            held[found.key] = found
        elif reason := _difference(found, other):
            taken.conflicts.append(Result(found, Outcome.DIFFERS, reason))
        else:
            there += 1
    return taken._replace(there=there)


def _checked(result: Result) -> Result:
    """`result`; invalid where its domain is none that `register` could have sent."""
    found = result.registration
    try:
        domain = parse_domain(found.sign_domain)
    except UsageError as error:
        return Result(found, Outcome.INVALID, error.message)
    if domain != found.sign_domain:
        return Result(found, Outcome.INVALID, f"in DNS the domain is {domain}")
    return result


def _difference(found: Registration, other: Registration) -> str:
    """Why `found` is not the registration that is there; "" where it is."""
    if other.record is None:
        return "the ledger says that somebody else has registered it"
    if _folded(found) != _folded(other):
        return "another record is there already, which stays"
    return ""


def _folded(found: Registration) -> tuple[str, ...]:
    """The record, as DNS compares it."""
    if found.record is None:
        return ()
    return found.record.fqdn.lower(), found.record.type.upper(), found.record.value
