"""Files for DNS tools, about one zone each: a class a tool."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dkimctl.models.registration import DnsRecord
from dkimctl.render.renderer import (
    Format,
    PerZoneFormat,
    PerZoneRenderer,
    Provider,
    owner_name,
    relative_name,
    txt_data,
)
from dkimctl.text.escaping import character_strings

# Half of the API's 1,000 records and 32,000 characters of values: an UPSERT counts twice.
_ROUTE53_RECORDS = 500
_ROUTE53_CHARACTERS = 16_000


class OctodnsRenderer(PerZoneRenderer):
    """octoDNS: the YAML for its YamlProvider, names in the order that octoDNS requires."""

    suffix = "yaml"

    def stem(self, zone: str) -> str:
        return zone  # octoDNS looks for a file of this name

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        yield "---\n"
        named = [(relative_name(record.fqdn, zone, apex=""), record) for record in records]
        for name, record in sorted(named, key=lambda pair: _natural(pair[0])):
            # octoDNS escapes semicolons and nothing else. A value with a backslash before one
            # has no form in its files; octoDNS then reports it.
            value = json.dumps(record.value.replace(";", "\\;"))
            yield f"{json.dumps(name)}:\n  ttl: {self._ttl}\n  type: TXT\n  value: {value}\n"


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key that compares numbers within names as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


class DnscontrolRenderer(PerZoneRenderer):
    """DNSControl: a D_EXTEND for a dnsconfig.js; without a trailing comma, which ES5 lacks."""

    suffix = "js"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        yield f"D_EXTEND({json.dumps(zone)}"
        for record in records:
            name = json.dumps(relative_name(record.fqdn, zone, apex="@"))
            yield f",\n  TXT({name}, {json.dumps(record.value)}, TTL({self._ttl}))"
        yield "\n);\n"


class Route53Renderer(PerZoneRenderer):
    """Route 53: change batches for `aws route53 change-resource-record-sets`, one in each file."""

    suffix = "json"

    def _parts(self, records: Sequence[DnsRecord]) -> Iterator[Sequence[DnsRecord]]:
        start = characters = 0
        for end, record in enumerate(records):
            more = len(txt_data(record.value))
            is_full = end - start == _ROUTE53_RECORDS
            if is_full or (end > start and characters + more > _ROUTE53_CHARACTERS):
                yield records[start:end]
                start, characters = end, 0
            characters += more
        yield records[start:]

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:  # noqa: ARG002
        lines = ",\n".join(json.dumps(self._upsert(record)) for record in records)
        yield f'{{"Changes": [\n{lines}\n]}}\n'

    def _upsert(self, record: DnsRecord) -> dict[str, object]:
        return {
            "Action": "UPSERT",
            "ResourceRecordSet": {
                "Name": owner_name(record.fqdn),
                "Type": "TXT",
                "TTL": self._ttl,
                "ResourceRecords": [{"Value": txt_data(record.value)}],
            },
        }


class PowerdnsRenderer(PerZoneRenderer):
    """PowerDNS: the body of PATCH /api/v1/servers/SERVER/zones/ZONE of its HTTP API.

    An RRset for each record replaces the TXT records of that name.
    """

    suffix = "json"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:  # noqa: ARG002
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


class _Resource(NamedTuple):
    """How Terraform's resources of a provider are written."""

    kind: str
    zone: str
    """The argument that has the zone's identifier; `identifier` says what that is."""
    identifier: str
    value: str
    """The argument that has the record's value: a list if it `is_list`."""
    is_list: bool = True
    dot: str = ""
    """After a name."""
    is_quoted: bool = True
    """Whether a value is written in quotes."""


_RESOURCES: Mapping[Provider, _Resource] = {
    Provider.ROUTE53: _Resource(
        "aws_route53_record", "zone_id", "zone's ID", "records", is_quoted=False
    ),
    Provider.CLOUDFLARE: _Resource(
        "cloudflare_dns_record", "zone_id", "zone's ID", "content", is_list=False
    ),
    Provider.GOOGLE: _Resource(
        "google_dns_record_set", "managed_zone", "managed zone's name", "rrdatas", dot="."
    ),
}


class TerraformRenderer(PerZoneRenderer):
    """Terraform, in its JSON syntax: a resource for each record.

    A variable has the zone's identifier at the provider.
    """

    suffix = "tf.json"

    def __init__(self, zones: Sequence[str], ttl: int, provider: Provider) -> None:
        super().__init__(zones, ttl)
        self._resource = _RESOURCES[provider]

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:
        variable = f"zone_{_identifier(zone)}"
        description = f"The {self._resource.identifier} of {zone} at the provider"
        resources = {
            f"dkim_{_identifier(record.fqdn)}": self._fields(record, f"${{var.{variable}}}")
            for record in records
        }
        document = {
            "variable": {variable: {"type": "string", "description": description}},
            "resource": {self._resource.kind: resources},
        }
        return [json.dumps(document, indent=2) + "\n"]

    def _fields(self, record: DnsRecord, zone: str) -> dict[str, object]:
        resource = self._resource
        if resource.is_quoted:
            text = txt_data(record.value)
        else:  # the provider adds the outer quotes, but not those between two strings
            strings = [part.decode() for part in character_strings(record.value)]
            text = '""'.join(re.sub(r'(["\\])', r"\\\1", part) for part in strings)
        text = text.replace("${", "$${").replace("%{", "%%{")  # Terraform's template markers
        return {
            "name": record.fqdn + resource.dot,
            "type": "TXT",
            "ttl": self._ttl,
            resource.zone: zone,
            resource.value: [text] if resource.is_list else text,
        }


def _identifier(name: str) -> str:
    """A Terraform name: a hash keeps names apart that differ only in replaced characters."""
    digest = hashlib.sha256(name.lower().encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]', '_', name)}_{digest}"


_RENDERERS: Mapping[Format, type[PerZoneRenderer]] = {
    Format.OCTODNS: OctodnsRenderer,
    Format.DNSCONTROL: DnscontrolRenderer,
    Format.ROUTE53: Route53Renderer,
    Format.POWERDNS: PowerdnsRenderer,
}


def open_tool(
    fmt: PerZoneFormat, zones: Sequence[str], ttl: int, provider: Provider
) -> PerZoneRenderer:
    """The renderer of a tool's files; `provider` is for Terraform."""
    if fmt is Format.TERRAFORM:
        return TerraformRenderer(zones, ttl, provider)
    return _RENDERERS[fmt](zones, ttl)
