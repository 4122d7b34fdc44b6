"""Zones, and the names within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dkimctl.errors import UsageError
from dkimctl.models.registration import DnsRecord
from dkimctl.text.escaping import printable

_TOLD = 10


def contains(zone: str, fqdn: str) -> bool:
    """Whether `fqdn` is the zone's apex or below it; both without trailing dot."""
    name, apex = fqdn.lower(), zone.lower()
    return name == apex or name.endswith(f".{apex}")


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which the zone contains, without the zone's name; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def zone_of(fqdn: str, zones: Iterable[str]) -> str | None:
    """The longest of `zones` that contains `fqdn`; None where none does."""
    return max((zone for zone in zones if contains(zone, fqdn)), key=len, default=None)


def by_zone(records: Iterable[DnsRecord], zones: Sequence[str]) -> dict[str, list[DnsRecord]]:
    """The records of each zone, in their order; zones without any are left out.

    Each goes into the longest of `zones` that contains its name. Raises UsageError that lists
    the records which lie in none.
    """
    found: dict[str, list[DnsRecord]] = {}
    outside = []
    for record in records:
        zone = zone_of(record.fqdn, zones)
        if zone is None:
            outside.append(record.fqdn)
        else:
            found.setdefault(zone, []).append(record)
    if outside:
        raise outside_of(zones, outside)
    return found


def outside_of(zones: Sequence[str], names: Sequence[str]) -> UsageError:
    """The error that lists `names`, which lie in none of `zones`."""
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    return UsageError(
        f"not in {which}: {', '.join(map(printable, names[:_TOLD]))}{more}",
        hint="select the domains of that zone alone, or name the other zones too",
    )
