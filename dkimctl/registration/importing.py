"""Importing saved results into the ledger."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models.registration import SOUND, DnsRecord, Outcome, Registration, Result
from dkimctl.specs.names import parse_domain

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger

_OURS = SOUND | {Outcome.UNUSABLE}


class ImportPlan(NamedTuple):
    """`new` registrations must be recorded; `known` is the number of those that are there already.

    `conflicts` have another record in the ledger, or in an item before them. `skipped` results
    have no registration of ours.
    """

    new: list[Registration]
    known: int
    conflicts: list[Result]
    skipped: list[Result]


def import_results(ledger: "Ledger", results: Iterable[Result]) -> ImportPlan:
    """Record the new registrations among `results`; returns what became of all of them."""
    plan = plan_import(results, ledger.all())
    ledger.record(plan.new)
    return plan


def plan_import(results: Iterable[Result], known: Iterable[Registration]) -> ImportPlan:
    """Sort `results` by what importing them does to a ledger that has `known`.

    Known registrations are kept, and of two items for one key the first counts.
    """
    by_key = {registration.key: registration for registration in known}
    plan = ImportPlan([], 0, [], [])
    count = 0
    for result in map(_with_valid_domain, results):
        registration = result.registration
        other = by_key.get(registration.key)
        if result.outcome not in _OURS or registration.record is None:
            plan.skipped.append(result)
        elif other is None or not (other.record or other.is_taken):
            plan.new.append(registration)
            by_key[registration.key] = registration
        elif reason := _conflict(registration.record, other):
            plan.conflicts.append(Result(registration, Outcome.DIFFERS, reason))
        else:
            count += 1
    return plan._replace(known=count)


def _with_valid_domain(result: Result) -> Result:
    """`result`, or an invalid one if `register` cannot have sent its domain."""
    registration = result.registration
    try:
        domain = parse_domain(registration.sign_domain)
    except UsageError as error:
        return Result(registration, Outcome.INVALID, error.message)
    if domain != registration.sign_domain:
        return Result(registration, Outcome.INVALID, f"in DNS the domain is {domain}")
    return result


def _conflict(record: DnsRecord, other: Registration) -> str:
    """Why `record` is not that of the registration in the ledger; "" if it is."""
    if other.record is None:
        return "in the ledger it belongs to another account"
    if _normalized(record) != _normalized(other.record):
        return "the ledger has another record, which is kept"
    return ""


def _normalized(record: DnsRecord) -> DnsRecord:
    """The record, as DNS compares it."""
    return DnsRecord(record.fqdn.lower(), record.type.upper(), record.value)
