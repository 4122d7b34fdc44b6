"""nsupdate: a script for BIND's nsupdate and Knot's knsupdate (RFC 2136)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.records import by_zone, owner_name, publishable, txt_data
from dkimctl.render.renderer import Renderer

# An update is one DNS message of at most 65,535 bytes; a record of 4,096 bits takes under 1,000.
_RECORDS_OF_UPDATE = 50


class _UpdateRenderer(Renderer[Result]):
    """Updates that change the TXT RRset of each record's name.

    With `zones`, each update names its zone. Without, nsupdate finds the zone, and each update
    has one record, since the next may be in another zone.
    """

    def __init__(self, zones: Sequence[str]) -> None:
        self._zones = zones
        self._records: list[DnsRecord] = []

    def add(self, result: Result) -> str:
        record = publishable(result)
        if record is None:
            return ""
        if self._zones:
            self._records.append(record)
            return ""
        return f"{self._change(record)}send\n"

    def end(self) -> Iterator[str]:
        for zone, records in by_zone(self._records, self._zones).items():
            for start in range(0, len(records), _RECORDS_OF_UPDATE):
                yield f"zone {owner_name(zone)}\n"
                yield from map(self._change, records[start : start + _RECORDS_OF_UPDATE])
                yield "send\n"

    @abstractmethod
    def _change(self, record: DnsRecord) -> str: ...


class NsupdateRenderer(_UpdateRenderer):
    """Updates that replace the TXT RRset of each record's name; `ttl` is in seconds."""

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        super().__init__(zones)
        self._ttl = ttl

    def _change(self, record: DnsRecord) -> str:
        name = owner_name(record.fqdn)
        return f"{_deletion(name)}update add {name} {self._ttl} IN TXT {txt_data(record.value)}\n"


class NsupdateDeletionRenderer(_UpdateRenderer):
    """Updates that delete the TXT RRset of each record's name."""

    def _change(self, record: DnsRecord) -> str:
        return _deletion(owner_name(record.fqdn))


def _deletion(name: str) -> str:
    return f"update delete {name} IN TXT\n"
