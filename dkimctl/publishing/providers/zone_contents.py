"""What an octoDNS provider has in a zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dkimctl.publishing.changes import NameState
from dkimctl.text.dns_names import parents


def list_zones(provider: Any) -> list[str]:
    """The names of its zones, as DNS has them: some providers list them in other scripts."""
    return [_in_dns(str(zone)).rstrip(".") for zone in provider.list_zones()]


def _in_dns(name: str) -> str:
    from octodns.idna import IdnaError, idna_encode

    try:
        return str(idna_encode(name))
    except IdnaError:  # it has no form in IDNA 2008, as with emoji: no name of ours is in it
        return name


def read_zone(provider: Any, zone: str) -> Any:
    """All records of the zone, as an octoDNS Zone; None if the provider does not have it."""
    from octodns.zone import Zone

    contents = Zone(f"{zone.lower()}.", [])
    exists = provider.populate(contents, target=True, lenient=True)
    # Some providers return nothing.
    return contents if exists or (exists is None and contents.records) else None


def states_of(contents: Any, zone: str, names: Sequence[str]) -> dict[str, NameState]:
    """What is at each of the names."""
    records = {
        (record.fqdn.rstrip(".").lower(), record._type): record for record in contents.records
    }
    return {name: _state(records, zone.lower(), name) for name in names}


def text_of(record: Any) -> tuple[str, ...]:
    """The values of a TXT record; octoDNS escapes semicolons."""
    return tuple(str(value).replace("\\;", ";") for value in record.values)


def _state(records: Mapping[tuple[str, str], Any], zone: str, name: str) -> NameState:
    cuts = [parent for parent in parents(name) if (parent, "NS") in records]
    below = [cut for cut in cuts if cut != zone and cut.endswith(f".{zone}")]
    if below:
        return NameState(delegated=below[-1])
    if alias := records.get((name.lower(), "CNAME")):
        return NameState(alias=str(alias.value).rstrip("."))
    if txt := records.get((name.lower(), "TXT")):
        return NameState(text_of(txt), txt.ttl)
    return NameState()
