"""Route 53: change batches for `aws route53 change-resource-record-sets`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dkimctl.models.registration import DnsRecord
from dkimctl.render.txt import owner_name, txt_data

# Of the API's 1,000 records and 32,000 characters of values: an UPSERT counts twice.
_MOST_RECORDS = 500
_MOST_CHARACTERS = 16_000


def render_route53(records: Sequence[DnsRecord], ttl: int) -> Iterator[str]:
    """The text of each batch; every one is a request of its own."""
    batch: list[str] = []
    characters = 0
    for record in records:
        value = txt_data(record.value)
        if batch and (len(batch) == _MOST_RECORDS or characters + len(value) > _MOST_CHARACTERS):
            yield _batch(batch)
            batch, characters = [], 0
        batch.append(json.dumps(_upsert(record, value, ttl)))
        characters += len(value)
    if batch:
        yield _batch(batch)


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
