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


class ZoneRenderer(PerZoneRenderer):
    """A comment and a TXT record for each publishable result; `ttl` is in seconds.

    With `zones`, in a file for each, for $INCLUDE in its zone file: names are relative to the zone.
    With `origin`, a zone, in one text, whose names are relative to it. Else names are absolute.
    """

    suffix = "zone"

    def __init__(self, zones: Sequence[str], ttl: int, origin: str | None = None) -> None:
        super().__init__(zones, ttl)
        self._origin = origin
        self._comments: dict[str, str] = {}

    def begin(self) -> str:
        return "" if self._origin is None else f"$ORIGIN {owner_name(self._origin)}\n"

    def add(self, item: Result) -> str:
        record = publishable(item)
        if record is None:
            return ""
        comment = _comment(item.registration)
        if self._zones:
            self._comments[record.fqdn] = comment
            return super().add(item)
        if self._origin is not None and not contains(self._origin, record.fqdn):
            raise outside_zones([record.fqdn], [self._origin])
        return self._lines(record, self._origin, comment)

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        # $ORIGIN is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
        include = f"; DKIM records of {zone}, to $INCLUDE in its zone file"
        yield f"{include}\n$ORIGIN {owner_name(zone)}\n"
        for record in records:
            yield self._lines(record, zone, self._comments[record.fqdn])

    def _lines(self, record: DnsRecord, origin: str | None, comment: str) -> str:
        name = owner_name(record.fqdn)
        if origin is not None:
            name = owner_name(relative_name(record.fqdn, origin, apex="@")).removesuffix(".")
        return f"; {comment}\n{name} {self._ttl} IN TXT {txt_data(record.value)}\n"


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
        self._count = 0
        self._first = DnsRecord("", "", "")

    def add(self, item: Result) -> str:
        record = publishable(item)
        if record is None:
            return ""
        self._count += 1
        if self._count == 1:  # until there is a second
            self._first = record
            return ""
        shown = [self._first, record] if self._count == 2 else [record]
        return "".join(f"{printable(each.fqdn)}\t{printable(each.value)}\n" for each in shown)

    def end(self) -> Iterator[str]:
        if self._count == 1:
            yield f"{printable(self._first.value)}\n"
