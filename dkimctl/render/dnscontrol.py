"""DNSControl: JavaScript that adds records to one domain of a dnsconfig.js."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.zone_names import relative_name


def render_dnscontrol(zone: str, records: Sequence[DnsRecord], ttl: int) -> Iterator[str]:
    """A D_EXTEND with a TXT for each record; no comma at the end, which ES5 does not know."""
    yield f"D_EXTEND({json.dumps(zone)}"
    for record in records:
        name = json.dumps(relative_name(record.fqdn, zone, apex="@"))
        yield f",\n  TXT({name}, {json.dumps(record.value)}, TTL({ttl}))"
    yield "\n);\n"
