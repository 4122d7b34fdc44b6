"""Value: the bare TXT value, to paste into a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.publishable import publishable_records
from dkimctl.text.escaping import printable


def render_value(results: Iterable[Result]) -> Iterator[str]:
    """The value of the one publishable record; of several, lines of FQDN, tab, value."""
    records = (record for _, record in publishable_records(results))
    first = next(records, None)
    if first is None:
        return
    second = next(records, None)
    if second is None:
        yield f"{printable(first.value)}\n"
        return
    yield _line(first)
    yield _line(second)
    yield from map(_line, records)


def _line(record: DnsRecord) -> str:
    return f"{printable(record.fqdn)}\t{printable(record.value)}\n"
