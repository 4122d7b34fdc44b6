"""Zone: master-file lines (RFC 1035 section 5), to be included in a zone as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models import Registration, Result
from dkimctl.render.publishable import publishable_records
from dkimctl.render.txt import owner_name, txt_data
from dkimctl.text import printable


def render_zone(results: Iterable[Result], ttl: int) -> Iterator[str]:
    """A comment and a TXT record for each publishable result; `ttl` is in seconds."""
    for result, record in publishable_records(results):
        comment = _comment(result.registration)
        yield f"; {comment}\n{owner_name(record.fqdn)} {ttl} IN TXT {txt_data(record.value)}\n"


def _comment(registration: Registration) -> str:
    parts = [registration.sign_domain]
    if registration.selector is not None:
        parts[0] += f" selector {registration.selector}"
    if registration.key_len is not None:
        parts.append(f"{registration.key_len} bits")
    if registration.code is not None:
        parts.append(f"result {registration.code} {registration.message or ''}".rstrip())
    # ASCII alone: name servers read master files in encodings of their own.
    return printable(", ".join(parts)).encode("ascii", "backslashreplace").decode("ascii")
