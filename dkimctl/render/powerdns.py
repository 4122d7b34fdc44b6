"""PowerDNS: the body of PATCH /api/v1/servers/SERVER/zones/ZONE of its HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.records import owner_name, txt_data
from dkimctl.render.renderer import PerZoneRenderer


class PowerdnsRenderer(PerZoneRenderer):
    """An RRset for each record, which replaces the TXT records of that name."""

    suffix = "json"

    def _text(
        self,
        zone: str,  # noqa: ARG002
        records: Sequence[DnsRecord],
    ) -> Iterator[str]:
        yield '{"rrsets": ['
        for number, record in enumerate(records):
            rrset = {
                "name": owner_name(record.fqdn),
                "type": "TXT",
                "ttl": self._ttl,
                "changetype": "REPLACE",
                "records": [{"content": txt_data(record.value), "disabled": False}],
            }
            yield f"{',' if number else ''}\n{json.dumps(rrset)}"
        yield "\n]}\n"
