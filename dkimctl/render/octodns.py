"""octoDNS: the YAML of one zone, for its YamlProvider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.records import relative_name
from dkimctl.render.renderer import PerZoneRenderer


class OctodnsRenderer(PerZoneRenderer):
    """A mapping from names to records, in the order that octoDNS requires."""

    suffix = "yaml"

    def stem(self, zone: str) -> str:
        return zone  # octoDNS looks for a file of this name

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        yield "---\n"

        def name_of(record: DnsRecord) -> str:
            return relative_name(record.fqdn, zone, apex="")

        for record in sorted(records, key=lambda record: _natural(name_of(record))):
            name = json.dumps(name_of(record))
            # octoDNS escapes semicolons and nothing else. A value with a backslash before one
            # has no form in its files; octoDNS then reports it.
            value = json.dumps(record.value.replace(";", "\\;"))
            yield f"{name}:\n  ttl: {self._ttl}\n  type: TXT\n  value: {value}\n"


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key that compares numbers within names as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
