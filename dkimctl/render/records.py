"""The DNS records of results: which may be published, how they are written, and their zones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dkimctl.errors import UsageError
from dkimctl.models.registration import DnsRecord, Outcome, Result
from dkimctl.text.escaping import printable

_REGISTERED = frozenset({Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS})

MAX_STRING = 255  # bytes in one character-string (RFC 1035 section 3.3)

# The bytes that stand as they are, in a quoted string and in a name.
_PLAIN_IN_QUOTES = bytes(set(range(0x20, 0x7F)) - set(b'"\\'))
_PLAIN_IN_NAME = bytes(byte for byte in range(0x80) if chr(byte).isalnum()) + b"_.-"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]")

_MAX_LISTED = 10  # names in one error


def publishable(result: Result) -> DnsRecord | None:
    """The record of `result` that may be put into DNS; None where there is none.

    Every format that DNS tooling reads takes its records from here.
    """
    return result.registration.record if result.outcome in _REGISTERED else None


def character_strings(value: str) -> list[bytes]:
    """The character-strings that a TXT record holds `value` in, at least one.

    A reader joins them with nothing between (RFC 6376 section 3.6.2.2); text beyond ASCII
    is UTF-8.
    """
    data = _encoded(value)
    return [data[at : at + MAX_STRING] for at in range(0, len(data), MAX_STRING)] or [b""]


def txt_data(value: str) -> str:
    """`value` as the data of a TXT record: quoted strings, one space apart."""
    if not _encoded(value).translate(None, _PLAIN_IN_QUOTES):  # mostly
        text = f'"{value[:MAX_STRING]}'
        for at in range(MAX_STRING, len(value), MAX_STRING):
            text += f'" "{value[at : at + MAX_STRING]}'
        return f'{text}"'
    return " ".join(f'"{_escaped(part, _PLAIN_IN_QUOTES)}"' for part in character_strings(value))


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name, with its trailing dot; its dots part labels."""
    if _PLAIN_NAME.fullmatch(fqdn):  # mostly
        return f"{fqdn}."
    return _escaped(_encoded(fqdn.removesuffix(".")), _PLAIN_IN_NAME) + "."


def contains(zone: str, fqdn: str) -> bool:
    """Whether `fqdn` is the zone's apex or below it; both without trailing dot."""
    name, apex = fqdn.lower(), zone.lower()
    return name == apex or name.endswith(f".{apex}")


def enclosing_zone(fqdn: str, zones: Iterable[str]) -> str | None:
    """The longest of `zones` that contains `fqdn`; None where none does."""
    return max((zone for zone in zones if contains(zone, fqdn)), key=len, default=None)


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which the zone contains, without the zone's name; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def by_zone(records: Iterable[DnsRecord], zones: Sequence[str]) -> dict[str, list[DnsRecord]]:
    """The records of each zone, in their order; zones without any are left out.

    Each record goes into its enclosing zone. Raises UsageError that lists the records which lie
    in none of `zones`.
    """
    records_of: dict[str, list[DnsRecord]] = {}
    outside = []
    for record in records:
        zone = enclosing_zone(record.fqdn, zones)
        if zone is None:
            outside.append(record.fqdn)
        else:
            records_of.setdefault(zone, []).append(record)
    if outside:
        raise outside_zones(outside, zones)
    return records_of


def outside_zones(names: Sequence[str], zones: Sequence[str]) -> UsageError:
    """The error that lists `names`, which lie in none of `zones`."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    return UsageError(
        f"not in {which}: {', '.join(map(printable, names[:_MAX_LISTED]))}{more}",
        hint="select the domains of that zone alone, or name the other zones too",
    )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escaped(data: bytes, plain: bytes) -> str:
    if not data.translate(None, plain):
        return data.decode("ascii")
    return "".join(chr(byte) if byte in plain else _escape(byte) for byte in data)


def _escape(byte: int) -> str:
    return f"\\{chr(byte)}" if byte in b'"\\' else f"\\{byte:03d}"
