"""Zone: master-file lines (RFC 1035 section 5), ready to include in a zone."""

from __future__ import annotations

from dkimctl.models.registration import Registration, Result
from dkimctl.render.records import (
    contains,
    outside_zones,
    owner_name,
    publishable,
    relative_name,
    txt_data,
)
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable


class ZoneRenderer(Renderer[Result]):
    """A comment and a TXT record for each publishable result; `ttl` is in seconds.

    With `origin`, a zone, names are relative to it, after an $ORIGIN line.
    """

    def __init__(self, ttl: int, origin: str | None = None) -> None:
        self._ttl = ttl
        self._origin = origin

    def begin(self) -> str:
        return "" if self._origin is None else f"$ORIGIN {owner_name(self._origin)}\n"

    def add(self, result: Result) -> str:
        record = publishable(result)
        if record is None:
            return ""
        origin = self._origin
        name = owner_name(record.fqdn) if origin is None else _relative(record.fqdn, origin)
        comment = _comment(result.registration)
        return f"; {comment}\n{name} {self._ttl} IN TXT {txt_data(record.value)}\n"


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
