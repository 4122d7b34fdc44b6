"""DNSControl: JavaScript that adds records to one domain of a dnsconfig.js."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.records import relative_name
from dkimctl.render.renderer import PerZoneRenderer


class DnscontrolRenderer(PerZoneRenderer):
    """A D_EXTEND with a TXT for each record; without a trailing comma, which ES5 lacks."""

    suffix = "js"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        yield f"D_EXTEND({json.dumps(zone)}"
        for record in records:
            name = json.dumps(relative_name(record.fqdn, zone, apex="@"))
            yield f",\n  TXT({name}, {json.dumps(record.value)}, TTL({self._ttl}))"
        yield "\n);\n"
