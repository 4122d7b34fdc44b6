"""octoDNS: the YAML of one zone, for its YamlProvider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.zone_names import relative_name


def render_octodns(zone: str, records: Sequence[DnsRecord], ttl: int) -> Iterator[str]:
    """A mapping from names to records, in the order that octoDNS asks for."""
    yield "---\n"
    named = [(relative_name(record.fqdn, zone, apex=""), record) for record in records]
    for name, record in sorted(named, key=lambda found: _natural(found[0])):
        # Its files escape this and nothing else; a backslash before it they cannot hold, and
        # octoDNS says so.
        value = record.value.replace(";", "\\;")
        yield f"{json.dumps(name)}:\n  ttl: {ttl}\n  type: TXT\n  value: {json.dumps(value)}\n"


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers within names are compared as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
