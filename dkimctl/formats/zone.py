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
        return "" if self._origin is None else f"$ORIGIN {owner_name(self._origin)}\n"

    def add(self, item: Result) -> str:
        record = publishable(item)
        if record is None:
            return ""
        name = owner_name(record.fqdn)
        if self._origin is not None:
            if not contains(self._origin, record.fqdn):
                raise outside_zones([record.fqdn], [self._origin])
            name = _relative_owner(record.fqdn, self._origin)
        return _lines(name, record, self._ttl, _comment(item.registration))


class ZoneFilesRenderer(PerZoneRenderer):
    """A file for each zone, for $INCLUDE in its zone file: names are relative to the zone."""

    suffix = "zone"

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        super().__init__(zones, ttl)
        self._comments: dict[str, str] = {}

    def add(self, item: Result) -> str:
        if record := publishable(item):
            self._comments[record.fqdn] = _comment(item.registration)
        return super().add(item)

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        # $ORIGIN is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
        include = f"; DKIM records of {zone}, to $INCLUDE in its zone file"
        yield f"{include}\n$ORIGIN {owner_name(zone)}\n"
        for record in records:
            name = _relative_owner(record.fqdn, zone)
            yield _lines(name, record, self._ttl, self._comments[record.fqdn])


def _relative_owner(fqdn: str, zone: str) -> str:
    return owner_name(relative_name(fqdn, zone, apex="@")).removesuffix(".")


def _lines(name: str, record: DnsRecord, ttl: int, comment: str) -> str:
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
