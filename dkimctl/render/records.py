"""DNS records: which may be published, their master-file form (RFC 1035), and their zones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dkimctl.errors import UsageError
from dkimctl.models.registration import SOUND, USABLE, DnsRecord, Result
from dkimctl.text.character_strings import MAX_STRING, character_strings, utf8
from dkimctl.text.dns_names import zone_finder
from dkimctl.text.escaping import printable

# Bytes that need no escape in a quoted string, and in a name.
_PLAIN_IN_QUOTES = bytes(set(range(0x20, 0x7F)) - set(b'"\\'))
_PLAIN_IN_NAME = bytes(byte for byte in range(0x80) if chr(byte).isalnum()) + b"_.-"

_PLAIN_NAME = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]"

_MAX_LISTED = 10  # names in one error


def publishable(result: Result) -> DnsRecord | None:
    """The record of `result` if it may be put into DNS, else None.

    Every format for DNS tools takes its records from here.
    """
    return result.registration.record if result.outcome in USABLE else None


def sound_record(result: Result) -> DnsRecord | None:
    """The same, and of what is retired: a record that may be checked, and deleted."""
    return result.registration.record if result.outcome in SOUND else None


def txt_data(value: str) -> str:
    """`value` as TXT data in a master file: quoted strings, separated by a space."""
    if not utf8(value).translate(None, _PLAIN_IN_QUOTES):  # almost always
        text = f'"{value[:MAX_STRING]}'
        for at in range(MAX_STRING, len(value), MAX_STRING):
            text += f'" "{value[at : at + MAX_STRING]}'
        return f'{text}"'
    return " ".join(f'"{_escaped(part, _PLAIN_IN_QUOTES)}"' for part in character_strings(value))


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name in a master file, with a trailing dot; dots separate labels."""
    if re.fullmatch(_PLAIN_NAME, fqdn):  # almost always
        return f"{fqdn}."
    return _escaped(utf8(fqdn.removesuffix(".")), _PLAIN_IN_NAME) + "."


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which is in `zone`, relative to it; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def by_zone(records: Iterable[DnsRecord], zones: Sequence[str]) -> dict[str, list[DnsRecord]]:
    """The records of each enclosing zone, in order; zones without records are left out.

    Raises UsageError that lists the records outside all of `zones`.
    """
    find_zone = zone_finder(zones)
    records_of: dict[str, list[DnsRecord]] = {}
    outside = []
    for record in records:
        zone = find_zone(record.fqdn)
        if zone is None:
            outside.append(record.fqdn)
        else:
            records_of.setdefault(zone, []).append(record)
    if outside:
        raise outside_zones(outside, zones)
    return records_of


def outside_zones(names: Sequence[str], zones: Sequence[str]) -> UsageError:
    """The error that lists `names`, which are outside all of `zones`."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    return UsageError(
        f"not in {which}: {', '.join(map(printable, names[:_MAX_LISTED]))}{more}",
        hint="select only the domains of that zone, or name the other zones too",
    )


def _escaped(data: bytes, plain: bytes) -> str:
    if not data.translate(None, plain):
        return data.decode("ascii")
    return "".join(chr(byte) if byte in plain else _escape(byte) for byte in data)


def _escape(byte: int) -> str:
    return f"\\{chr(byte)}" if byte in b'"\\' else f"\\{byte:03d}"
