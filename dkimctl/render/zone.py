"""Zone: master-file lines (RFC 1035 section 5), ready to include in a zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord, Registration, Result
from dkimctl.render.records import outside_zones, owner_name, publishable, relative_name, txt_data
from dkimctl.render.renderer import PerZoneRenderer, Renderer
from dkimctl.text.dns_names import contains
from dkimctl.text.escaping import printable


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
        origin = self._origin
        name = owner_name(record.fqdn) if origin is None else _relative(record.fqdn, origin)
        return _lines(name, record, self._ttl, _comment(result.registration))


class ZoneFilesRenderer(PerZoneRenderer):
    """A file for each zone, for $INCLUDE in its zone file: names are relative to the zone."""

    suffix = "zone"

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        super().__init__(zones, ttl)
        self._comments: dict[str, str] = {}

    def add(self, result: Result) -> None:
        super().add(result)
        if record := publishable(result):
            self._comments[record.fqdn] = _comment(result.registration)

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        # $ORIGIN is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
        yield f"; DKIM records of {zone}, to $INCLUDE in its zone file\n{_origin_line(zone)}"
        for record in records:
            name = _relative(record.fqdn, zone)
            yield _lines(name, record, self._ttl, self._comments[record.fqdn])


def _origin_line(zone: str) -> str:
    return f"$ORIGIN {owner_name(zone)}\n"


def _lines(name: str, record: DnsRecord, ttl: int, comment: str) -> str:
    return f"; {comment}\n{name} {ttl} IN TXT {txt_data(record.value)}\n"


def _relative(fqdn: str, origin: str) -> str:
    if not contains(origin, fqdn):
        raise outside_zones([fqdn], [origin])
    return owner_name(relative_name(fqdn, origin, apex="@")).removesuffix(".")


def _comment(registration: Registration) -> str:
    text = registration.sign_domain
    if registration.selector is not None:
        text += f" selector {registration.selector}"
    if registration.key_len is not None:
        text += f", {registration.key_len} bits"
    if registration.code is not None:
        text += f", result {registration.code} {registration.message or ''}"
    text = text.rstrip()
    if text.isascii() and text.isprintable():
        return text
    # ASCII only: the encoding of a master file depends on the name server.
    return printable(text).encode("ascii", "backslashreplace").decode("ascii")
