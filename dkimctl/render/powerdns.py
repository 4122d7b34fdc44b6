"""PowerDNS: the body of PATCH /api/v1/servers/SERVER/zones/ZONE of its HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.txt import owner_name, txt_data


def render_powerdns(records: Sequence[DnsRecord], ttl: int) -> Iterator[str]:
    """An RRset for each record, which replaces what TXT records the name has."""
    yield '{"rrsets": ['
    for number, record in enumerate(records):
        rrset = {
            "name": owner_name(record.fqdn),
            "type": "TXT",
            "ttl": ttl,
            "changetype": "REPLACE",
            "records": [{"content": txt_data(record.value), "disabled": False}],
        }
        yield f"{',' if number else ''}\n{json.dumps(rrset)}"
    yield "\n]}\n"
