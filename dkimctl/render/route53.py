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

    def _texts(
        self,
        zone: str,  # noqa: ARG002
        records: Sequence[DnsRecord],
    ) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for record in records:
            value = txt_data(record.value)
            if batch and (len(batch) == _MAX_RECORDS or characters + len(value) > _MAX_CHARACTERS):
                yield [_batch(batch)]
                batch, characters = [], 0
            batch.append(json.dumps(_upsert(record, value, self._ttl)))
            characters += len(value)
        if batch:
            yield [_batch(batch)]


def _upsert(record: DnsRecord, value: str, ttl: int) -> dict[str, object]:
    return {
        "Action": "UPSERT",
        "ResourceRecordSet": {
            "Name": owner_name(record.fqdn),
            "Type": "TXT",
            "TTL": ttl,
            "ResourceRecords": [{"Value": value}],
        },
    }


def _batch(changes: Sequence[str]) -> str:
    lines = ",\n".join(changes)
    return f'{{"Changes": [\n{lines}\n]}}\n'
