"""Zone: master-file lines (RFC 1035 section 5), ready to include in a zone; and the bare value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.formats.renderer import (
    PerZoneRenderer,
    Renderer,
    outside_zones,
    owner_name,
    publishable,
    relative_name,
    txt_data,
)
from dkimctl.models import DnsRecord, Registration, Result
from dkimctl.names import contains
from dkimctl.text import printable


class ZoneRenderer(Renderer[Result]):
    """A comment and a TXT record for each publishable result; `ttl` is in seconds.

    With `origin`, a zone, names are relative to it, after an $ORIGIN line.
    """

    def __init__(self, ttl: int, origin: str | None = None) -> None:
        self._ttl = ttl
        self._origin = origin

    def begin(self) -> str:
        return "" if self._origin is None else _origin_line(self._origin)

    def add(self, result: Result) -> str:
        record = publishable(result)
        if record is None:
            return ""
        return _lines(record, self._origin, self._ttl, _comment(result.registration))


class ZoneFilesRenderer(PerZoneRenderer):
    """A file for each zone, for $INCLUDE in its zone file: names are relative to the zone."""

    suffix = "zone"

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        super().__init__(zones, ttl)
        self._comments: dict[str, str] = {}

    def add(self, result: Result) -> str:
        if record := publishable(result):
            self._comments[record.fqdn] = _comment(result.registration)
        return super().add(result)

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        # $ORIGIN is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
        yield f"; DKIM records of {zone}, to $INCLUDE in its zone file\n{_origin_line(zone)}"
        for record in records:
            yield _lines(record, zone, self._ttl, self._comments[record.fqdn])


def _origin_line(zone: str) -> str:
    return f"$ORIGIN {owner_name(zone)}\n"


def _lines(record: DnsRecord, origin: str | None, ttl: int, comment: str) -> str:
    """The lines of a record, whose name is relative to `origin`, if there is one."""
    name = owner_name(record.fqdn)
    if origin is not None:
        if not contains(origin, record.fqdn):
            raise outside_zones([record.fqdn], [origin])
        name = owner_name(relative_name(record.fqdn, origin, apex="@")).removesuffix(".")
    return f"; {comment}\n{name} {ttl} IN TXT {txt_data(record.value)}\n"


def _comment(registration: Registration) -> str:
    text = registration.sign_domain
    if registration.selector is not None:
        text += f" selector {registration.selector}"
    if registration.key_len is not None:
        text += f", {registration.key_len} bits"
    if registration.code is not None:
        text += f", result {registration.code} {registration.message or ''}"
    # ASCII only: the encoding of a master file depends on the name server.
    return printable(text.rstrip()).encode("ascii", "backslashreplace").decode("ascii")


class ValueRenderer(Renderer[Result]):
    """The value of the one publishable record, to paste into a form.

    Of several records, lines of FQDN, tab, value.
    """

    def __init__(self) -> None:
        self._first: DnsRecord | None = None  # until there is a second
        self._has_several = False

    def add(self, result: Result) -> str:
        record = publishable(result)
        if record is None:
            return ""
        line = f"{printable(record.fqdn)}\t{printable(record.value)}\n"
        if self._has_several:
            return line
        if self._first is None:
            self._first = record
            return ""
        self._has_several = True
        return f"{printable(self._first.fqdn)}\t{printable(self._first.value)}\n{line}"

    def end(self) -> Iterator[str]:
        if self._first is not None and not self._has_several:
            yield f"{printable(self._first.value)}\n"
