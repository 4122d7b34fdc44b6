"""Zone: master-file lines (RFC 1035 section 5), to be included in a zone as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import Registration, Result
from dkimctl.render.publishable import publishable_records
from dkimctl.render.txt import owner_name, txt_data
from dkimctl.render.zone_names import contains, outside_of, relative_name
from dkimctl.text.escaping import printable


def render_zone(results: Iterable[Result], ttl: int, origin: str | None = None) -> Iterator[str]:
    """A comment and a TXT record for each publishable result; `ttl` is in seconds.

    With `origin`, the zone that all are in, names are relative to it, below an $ORIGIN. Raises
    UsageError at the first that is outside.
    """
    if origin is not None:
        yield f"$ORIGIN {owner_name(origin)}\n"
    for result, record in publishable_records(results):
        comment = _comment(result.registration)
        name = owner_name(record.fqdn)
        if origin is not None:
            name = _relative(record.fqdn, origin)
        yield f"; {comment}\n{name} {ttl} IN TXT {txt_data(record.value)}\n"


def _relative(fqdn: str, origin: str) -> str:
    if not contains(origin, fqdn):
        raise outside_of([origin], [fqdn])
    return owner_name(relative_name(fqdn, origin, apex="@")).removesuffix(".")


def _comment(found: Registration) -> str:
    selector = f" selector {found.selector}" if found.selector is not None else ""
    bits = f", {found.key_len} bits" if found.key_len is not None else ""
    answer = f", result {found.code} {found.message or ''}" if found.code is not None else ""
    text = f"{found.sign_domain}{selector}{bits}{answer}".rstrip()
    if text.isascii() and text.isprintable():
        return text
    # ASCII alone: name servers read master files in encodings of their own.
    return printable(text).encode("ascii", "backslashreplace").decode("ascii")
