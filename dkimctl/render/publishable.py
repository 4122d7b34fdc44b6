"""Which results may become DNS records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import DnsRecord, Outcome, Result

_REGISTERED = frozenset({Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS})


def publishable(result: Result) -> DnsRecord | None:
    """The record of `result` that may be put into DNS; None where there is none.

    Every format that DNS tooling reads takes its records from here.
    """
    return result.registration.record if result.outcome in _REGISTERED else None


def publishable_records(results: Iterable[Result]) -> Iterator[tuple[Result, DnsRecord]]:
    """Each of `results` that may be put into DNS, with its record."""
    for result in results:
        record = publishable(result)
        if record is not None:
            yield result, record
