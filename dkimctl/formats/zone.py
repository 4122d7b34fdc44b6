"""Zone: master-file lines (RFC 1035 section 5), ready to include in a zone; and the bare value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.formats.renderer import (
    PerZoneRenderer,
    Renderer,
    owner_name,
    publishable,
    relative_name,
    txt_data,
)
from dkimctl.models import DnsRecord, Registration, Result
from dkimctl.text import printable


class ZoneRenderer(PerZoneRenderer):
    """A comment and a TXT record for each publishable result; `ttl` is in seconds.

    With `zones`, a file for each, for $INCLUDE in its zone file: names are relative to the zone.
    With `origin`, one text with names relative to that zone. Without either, names are absolute.
    """

    suffix = "zone"

    def __init__(self, zones: Sequence[str], ttl: int, origin: str | None = None) -> None:
        super().__init__(zones if origin is None else [origin], ttl)
        self._is_included = origin is None
        self._comments: dict[str, str] = {}

    def add(self, item: Result) -> str:
        record = publishable(item)
        if record is not None and not self._zones:
            return _lines(owner_name(record.fqdn), record, self._ttl, _comment(item.registration))
        if record is not None:
            self._comments[record.fqdn] = _comment(item.registration)
            self._records.append(record)
        return ""

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        if self._is_included:
            yield f"; DKIM records of {zone}, to $INCLUDE in its zone file\n"
        # It is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
        yield f"$ORIGIN {owner_name(zone)}\n"
        for record in records:
            name = owner_name(relative_name(record.fqdn, zone, apex="@")).removesuffix(".")
            yield _lines(name, record, self._ttl, self._comments[record.fqdn])


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
