"""Saved results: the output of `--format json`, or a response of the service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.input_files import FileKind, guess_kind, read_bytes
from dkimctl.models import SOUND, USABLE, DnsRecord, DomainSpec, Outcome, Registration, Result
from dkimctl.names import parse_domain
from dkimctl.registration import outcomes

if TYPE_CHECKING:
    from dkimctl.client.wire import Reply
    from dkimctl.ledger.ledger import Ledger


def read_saved_results(path: str) -> Reply:
    """Read a file, or standard input for `-`. Raises UsageError if it is not a saved result."""
    from dkimctl.client.wire import DecodeError, decode_reply

    data = read_bytes(path, largest=1 << 29)  # bytes; 100,000 registrations are 85 MB
    try:
        reply = decode_reply(data, is_saved=True)
        if len(reply.faults) > 1 and not reply.items:  # such as the output of `list`
            raise DecodeError(f"none of its items can be read: {reply.faults[0]}")
    except DecodeError as error:
        name, reason, kind = "<stdin>" if path == "-" else path, str(error), guess_kind(data)
        if kind and kind not in (FileKind.SAVED, FileKind.UTF_16):  # whose JSON lacks something
            reason = f"it {kind.what}"
        elif not data.lstrip().startswith((b"{", b"[")):
            reason = "it is not JSON"
        hint = "name a file written by --format json of register or show-dns, or a response"
        raise UsageError(f"{name} is not a saved result: {reason}", hint=hint) from None
    return reply


def results_of(
    registrations: Iterable[Registration], retired: Set[Registration] = frozenset()
) -> Iterator[Result]:
    """The result of each registration, from its own content: other saved outcomes are not trusted.

    Of two records for the same name in DNS, only the first is usable.
    """
    values: dict[str, str] = {}
    for registration in registrations:
        spec = DomainSpec(registration.sign_domain, registration.selector)
        if registration.code is None:
            result = outcomes.unanswered(spec, "there was no answer when it was saved")
        else:
            result = outcomes.of_answer(spec, registration)
        if registration in retired and result.outcome in USABLE:
            result = result._replace(outcome=Outcome.RETIRED, reason="it was retired when saved")
        record = result.registration.record
        if record and values.setdefault(record.fqdn.lower(), record.value) != record.value:
            reason = f"another item has another record for {record.fqdn}"
            result = Result(registration, Outcome.UNUSABLE, reason)
        yield result


class ImportPlan(NamedTuple):
    """What importing does with each result."""

    new: list[Registration]  # to be recorded
    known: list[Registration]  # in the ledger already
    conflicts: list[Result]  # with another record there, or in an item before them
    skipped: list[Result]  # have no registration of ours


def import_results(ledger: Ledger, results: Iterable[Result]) -> ImportPlan:
    """Record the new ones; known ones are kept, and the first of two for one key counts."""
    by_key = {registration.key: registration for registration in ledger.all()}
    plan = ImportPlan([], [], [], [])
    for result in map(_with_valid_domain, results):
        registration = result.registration
        other = by_key.get(registration.key)
        if result.outcome not in SOUND | {Outcome.UNUSABLE} or registration.record is None:
            plan.skipped.append(result)
        elif other is None or not (other.record or other.is_taken):
            plan.new.append(registration)
            by_key[registration.key] = registration
        elif reason := _conflict(registration.record, other):
            plan.conflicts.append(Result(registration, Outcome.DIFFERS, reason))
        else:
            plan.known.append(registration)
    ledger.record(plan.new)
    return plan


def _with_valid_domain(result: Result) -> Result:
    """`result`, or an invalid one if `register` cannot have sent its domain."""
    registration = result.registration
    try:
        domain = parse_domain(registration.sign_domain)
        fault = "" if domain == registration.sign_domain else f"in DNS the domain is {domain}"
    except UsageError as error:
        fault = error.message
    return Result(registration, Outcome.INVALID, fault) if fault else result


def _conflict(record: DnsRecord, other: Registration) -> str:
    """Why `record` is not that of the registration in the ledger; "" if it is."""
    if other.record is None:
        return "in the ledger it belongs to another account"
    # As DNS compares them.
    new, kept = (
        (each.fqdn.lower(), each.type.upper(), each.value) for each in (record, other.record)
    )
    return "" if new == kept else "the ledger has another record, which is kept"
