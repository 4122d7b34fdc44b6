"""nsupdate: a script for BIND's nsupdate and Knot's knsupdate (RFC 2136)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.publishable import publishable_records
from dkimctl.render.txt import owner_name, txt_data
from dkimctl.render.zone_names import by_zone

# An update is one DNS message of at most 65,535 bytes; a record of 4,096 bits takes under 1,000.
_RECORDS_OF_UPDATE = 50


def render_nsupdate(
    results: Iterable[Result], ttl: int, zones: Sequence[str] = ()
) -> Iterator[str]:
    """Updates that replace the TXT set of each record's name.

    With `zones` (see `by_zone`), each update names its zone. Without, each is for one record,
    since the next may lie in another zone, and whoever reads it finds the zone.
    """
    return _updates(results, zones, lambda record: _deletion(record) + _addition(record, ttl))


def render_nsupdate_deletions(
    results: Iterable[Result], zones: Sequence[str] = ()
) -> Iterator[str]:
    """Updates that remove the TXT set of each record's name; otherwise like `render_nsupdate`."""
    return _updates(results, zones, _deletion)


def _updates(
    results: Iterable[Result], zones: Sequence[str], change: Callable[[DnsRecord], str]
) -> Iterator[str]:
    records = (record for _, record in publishable_records(results))
    if not zones:
        for record in records:
            yield f"{change(record)}send\n"
        return
    for zone, of_zone in by_zone(records, zones).items():
        for start in range(0, len(of_zone), _RECORDS_OF_UPDATE):
            yield f"zone {owner_name(zone)}\n"
            yield from map(change, of_zone[start : start + _RECORDS_OF_UPDATE])
            yield "send\n"


def _deletion(record: DnsRecord) -> str:
    return f"update delete {owner_name(record.fqdn)} IN TXT\n"


def _addition(record: DnsRecord, ttl: int) -> str:
    return f"update add {owner_name(record.fqdn)} {ttl} IN TXT {txt_data(record.value)}\n"
