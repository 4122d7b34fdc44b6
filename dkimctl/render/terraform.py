"""Terraform: a file in its JSON syntax with a resource for each record of one zone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import assert_never

from dkimctl.models.registration import DnsRecord
from dkimctl.render.records import txt_data
from dkimctl.render.renderer import PerZoneRenderer, Provider
from dkimctl.text.character_strings import character_strings

_RESOURCES = {
    Provider.ROUTE53: "aws_route53_record",
    Provider.CLOUDFLARE: "cloudflare_dns_record",
    Provider.GOOGLE: "google_dns_record_set",
}


class TerraformRenderer(PerZoneRenderer):
    """A variable for the zone's identifier at the provider, and a resource for each record."""

    suffix = "tf.json"

    def __init__(self, zones: Sequence[str], ttl: int, provider: Provider) -> None:
        super().__init__(zones, ttl)
        self._provider = provider

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:
        provider = self._provider
        variable = f"zone_{_identifier(zone)}"
        what = "managed zone's name" if provider is Provider.GOOGLE else "zone's ID"
        described = {"type": "string", "description": f"The {what} of {zone} at the provider"}
        reference = f"${{var.{variable}}}"
        resources = {
            f"dkim_{_identifier(record.fqdn)}": _resource(record, self._ttl, provider, reference)
            for record in records
        }
        document = {
            "variable": {variable: described},
            "resource": {_RESOURCES[provider]: resources},
        }
        return [json.dumps(document, indent=2) + "\n"]


def _resource(record: DnsRecord, ttl: int, provider: Provider, zone: str) -> dict[str, object]:
    name, value = record.fqdn, record.value
    match provider:
        case Provider.ROUTE53:
            # The provider adds the outer quotes, but not those between two strings.
            strings = [part.decode() for part in character_strings(value)]
            joined = '""'.join(re.sub(r'(["\\])', r"\\\1", part) for part in strings)
            rest: dict[str, object] = {"zone_id": zone, "records": [_literal(joined)]}
        case Provider.CLOUDFLARE:
            rest = {"zone_id": zone, "content": _literal(txt_data(value))}
        case Provider.GOOGLE:
            name += "."
            rest = {"managed_zone": zone, "rrdatas": [_literal(txt_data(value))]}
        case _:
            assert_never(provider)
    return {"name": name, "type": "TXT", "ttl": ttl, **rest}


def _literal(text: str) -> str:
    """`text` with Terraform's template markers escaped."""
    return text.replace("${", "$${").replace("%{", "%%{")


def _identifier(name: str) -> str:
    """A Terraform name: a hash keeps names apart that differ only in replaced characters."""
    digest = hashlib.sha256(name.lower().encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]', '_', name)}_{digest}"
