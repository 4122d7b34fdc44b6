"""Route 53: change batches for `aws route53 change-resource-record-sets`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.records import owner_name, txt_data
from dkimctl.render.renderer import PerZoneRenderer

# Half of the API's 1,000 records and 32,000 characters of values: an UPSERT counts twice.
_MAX_RECORDS = 500
_MAX_CHARACTERS = 16_000


class Route53Renderer(PerZoneRenderer):
    """One change batch in each file; a file is one request."""

    suffix = "json"

    def _parts(self, records: Sequence[DnsRecord]) -> Iterator[Sequence[DnsRecord]]:
        start = characters = 0
        for end, record in enumerate(records):
            more = len(txt_data(record.value))
            if end - start == _MAX_RECORDS or (end > start and characters + more > _MAX_CHARACTERS):
                yield records[start:end]
                start, characters = end, 0
            characters += more
        yield records[start:]

    def _text(
        self,
        zone: str,  # noqa: ARG002
        records: Sequence[DnsRecord],
    ) -> Iterator[str]:
        lines = ",\n".join(json.dumps(_upsert(record, self._ttl)) for record in records)
        yield f'{{"Changes": [\n{lines}\n]}}\n'


def _upsert(record: DnsRecord, ttl: int) -> dict[str, object]:
    return {
        "Action": "UPSERT",
        "ResourceRecordSet": {
            "Name": owner_name(record.fqdn),
            "Type": "TXT",
            "TTL": ttl,
            "ResourceRecords": [{"Value": txt_data(record.value)}],
        },
    }
