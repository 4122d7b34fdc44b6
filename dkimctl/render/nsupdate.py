"""nsupdate: a script for BIND's nsupdate and Knot's knsupdate (RFC 2136)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.records import (
    by_zone,
    owner_name,
    publishable,
    sound_record,
    txt_data,
)
from dkimctl.render.renderer import PerZoneRenderer, Renderer
from dkimctl.text.character_strings import character_strings

# Octets of changes in an update, which is one DNS message of at most 65,535 octets: the rest is
# for its header, the zone's name, and a signature (TSIG) with two names.
_MAX_CHANGES = 64_000
_FIXED_SIZE = 10  # type, class, TTL and length of the data (RFC 1035 section 3.2.1)


class _UpdateRenderer(Renderer[Result]):
    """Updates that change the TXT RRset of each record's name.

    With `zones`, each update names its zone. Without, nsupdate finds the zone, and each update
    has one record, since the next may be in another zone.
    """

    def __init__(self, zones: Sequence[str]) -> None:
        self._zones = zones
        self._records: list[DnsRecord] = []

    def add(self, result: Result) -> str:
        record = self._record_of(result)
        if record is None:
            return ""
        if self._zones:
            self._records.append(record)
            return ""
        return f"{self._change(record)}send\n"

    def end(self) -> Iterator[str]:
        for zone, records in by_zone(self._records, self._zones).items():
            yield from self.updates_of(zone, records)

    def updates_of(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        """The updates of one zone."""
        for update in self._updates(records):
            yield f"zone {owner_name(zone)}\n"
            yield from map(self._change, update)
            yield "send\n"

    def _record_of(self, result: Result) -> DnsRecord | None:
        return publishable(result)

    def _updates(self, records: Sequence[DnsRecord]) -> Iterator[Sequence[DnsRecord]]:
        """The records in as many parts as there must be updates."""
        start = size = 0
        for end, record in enumerate(records):
            more = self._size(record)
            if size + more > _MAX_CHANGES:
                yield records[start:end]
                start, size = end, 0
            size += more
        yield records[start:]

    @abstractmethod
    def _change(self, record: DnsRecord) -> str: ...

    @abstractmethod
    def _size(self, record: DnsRecord) -> int:
        """The octets of the change in a DNS message, at most."""


class NsupdateRenderer(_UpdateRenderer):
    """Updates that replace the TXT RRset of each record's name; `ttl` is in seconds."""

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        super().__init__(zones)
        self._ttl = ttl

    def _change(self, record: DnsRecord) -> str:
        name = owner_name(record.fqdn)
        return f"{_deletion(name)}update add {name} {self._ttl} IN TXT {txt_data(record.value)}\n"

    def _size(self, record: DnsRecord) -> int:
        strings = character_strings(record.value)
        return 2 * _head_size(record) + sum(map(len, strings)) + len(strings)


class NsupdateFilesRenderer(PerZoneRenderer):
    """The same updates in a script for each zone, whose servers or TSIG keys may differ."""

    suffix = "nsupdate"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        return NsupdateRenderer([zone], self._ttl).updates_of(zone, records)


class NsupdateDeletionRenderer(_UpdateRenderer):
    """Updates that delete the TXT RRset of each record's name."""

    def _record_of(self, result: Result) -> DnsRecord | None:
        return sound_record(result)

    def _change(self, record: DnsRecord) -> str:
        return _deletion(owner_name(record.fqdn))

    def _size(self, record: DnsRecord) -> int:
        return _head_size(record)


def _deletion(name: str) -> str:
    return f"update delete {name} IN TXT\n"


def _head_size(record: DnsRecord) -> int:
    """The octets of a record without its data; names might not be compressed."""
    return len(record.fqdn) + 2 + _FIXED_SIZE
