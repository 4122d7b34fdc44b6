"""nsupdate: a script for BIND's nsupdate and Knot's knsupdate (RFC 2136)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.formats.renderer import (
    PerZoneRenderer,
    owner_name,
    publishable,
    sound_record,
    txt_data,
)
from dkimctl.models import DnsRecord, Result
from dkimctl.text import character_strings

# Octets of changes in an update, which is one DNS message of at most 65,535 octets: the rest is
# for its header, the zone's name, and a signature (TSIG) with two names.
_MAX_CHANGES = 64_000
_FIXED_SIZE = 10  # type, class, TTL and length of the data (RFC 1035 section 3.2.1)


class NsupdateRenderer(PerZoneRenderer):
    """Updates that replace the TXT RRset of each record's name; `ttl` is in seconds.

    Without `ttl` they delete it. With `zones`, each update names its zone: in one script, or in a
    script for each zone, whose servers or TSIG keys may differ. Without, nsupdate finds the zone,
    and each update has one record, since the next may be in another zone.
    """

    suffix = "nsupdate"

    def __init__(self, zones: Sequence[str], ttl: int | None) -> None:
        super().__init__(zones, ttl or 0)
        self._new_ttl = ttl

    def add(self, item: Result) -> str:
        record = sound_record(item) if self._new_ttl is None else publishable(item)
        if record is not None and not self._zones:
            return f"{_change(record, self._new_ttl)[0]}send\n"
        self._records += [record] if record else []
        return ""

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        """The updates of one zone, of as many records as fit each."""
        begin = f"zone {owner_name(zone)}\n"
        yield begin
        size = 0
        for record in records:
            text, more = _change(record, self._new_ttl)
            if size + more > _MAX_CHANGES:
                yield f"send\n{begin}"
                size = 0
            size += more
            yield text
        yield "send\n"


def _change(record: DnsRecord, ttl: int | None) -> tuple[str, int]:
    """The lines that change a record; and their octets in a message, with uncompressed names."""
    name, head = owner_name(record.fqdn), len(record.fqdn) + 2 + _FIXED_SIZE
    deletion = f"update delete {name} IN TXT\n"
    if ttl is None:
        return deletion, head
    strings = character_strings(record.value)
    size = 2 * head + sum(map(len, strings)) + len(strings)
    return f"{deletion}update add {name} {ttl} IN TXT {txt_data(record.value)}\n", size
