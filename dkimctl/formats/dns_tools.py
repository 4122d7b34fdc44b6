"""Files for DNS tools, about one zone each: a class a tool."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dkimctl.formats.renderer import (
    Format,
    PerZoneRenderer,
    Provider,
    owner_name,
    relative_name,
    txt_data,
)
from dkimctl.models import DnsRecord
from dkimctl.text import character_strings

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

        def natural(pair: tuple[str, DnsRecord]) -> list[tuple[int, int, str]]:
            """Compares numbers within names as numbers."""
            parts = re.split(r"([0-9]+)", pair[0])
            return [
                (0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part
            ]

        for name, record in sorted(named, key=natural):
            # octoDNS escapes semicolons and nothing else. A value with a backslash before one
            # has no form in its files; octoDNS then reports it.
            value = json.dumps(record.value.replace(";", "\\;"))
            yield f"{json.dumps(name)}:\n  ttl: {self._ttl}\n  type: TXT\n  value: {value}\n"


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

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:  # noqa: ARG002
        changes = []
        for record in records:
            rrset = {"Name": owner_name(record.fqdn), "Type": "TXT", "TTL": self._ttl}
            values = {"ResourceRecords": [{"Value": txt_data(record.value)}]}
            changes.append({"Action": "UPSERT", "ResourceRecordSet": rrset | values})
        return [_json("Changes", changes)]


class PowerdnsRenderer(PerZoneRenderer):
    """PowerDNS: the body of PATCH /api/v1/servers/SERVER/zones/ZONE of its HTTP API.

    An RRset for each record replaces the TXT records of that name.
    """

    suffix = "json"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:  # noqa: ARG002
        rrsets = []
        for record in records:
            rrset = {"name": owner_name(record.fqdn), "type": "TXT", "ttl": self._ttl}
            content = {"content": txt_data(record.value), "disabled": False}
            rrsets.append({**rrset, "changetype": "REPLACE", "records": [content]})
        return [_json("rrsets", rrsets)]


# How Terraform's resources of a provider are written: their kind, the argument that has the zone's
# identifier, what that is, and the argument that has the record's value.
_RESOURCES: Mapping[Provider, tuple[str, str, str, str]] = {
    Provider.ROUTE53: ("aws_route53_record", "zone_id", "zone's ID", "records"),
    Provider.CLOUDFLARE: ("cloudflare_dns_record", "zone_id", "zone's ID", "content"),
    Provider.GOOGLE: ("google_dns_record_set", "managed_zone", "managed zone's name", "rrdatas"),
}


class TerraformRenderer(PerZoneRenderer):
    """Terraform, in its JSON syntax: a resource for each record.

    A variable has the zone's identifier at the provider.
    """

    suffix = "tf.json"

    def __init__(self, zones: Sequence[str], ttl: int, provider: Provider) -> None:
        super().__init__(zones, ttl)
        self._provider = provider

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:
        kind, zone_argument, identifier, value_argument = _RESOURCES[self._provider]
        variable = f"zone_{_identifier(zone)}"
        resources = {}
        for record in records:
            if self._provider is Provider.ROUTE53:
                # It adds the outer quotes, but not those between two strings.
                strings = [part.decode() for part in character_strings(record.value)]
                text = '""'.join(re.sub(r'(["\\])', r"\\\1", part) for part in strings)
            else:
                text = txt_data(record.value)
            text = text.replace("${", "$${").replace("%{", "%%{")  # Terraform's template markers
            resources[f"dkim_{_identifier(record.fqdn)}"] = {
                "name": f"{record.fqdn}." if self._provider is Provider.GOOGLE else record.fqdn,
                "type": "TXT",
                "ttl": self._ttl,
                zone_argument: f"${{var.{variable}}}",
                value_argument: text if self._provider is Provider.CLOUDFLARE else [text],
            }
        description = f"The {identifier} of {zone} at the provider"
        document = {
            "variable": {variable: {"type": "string", "description": description}},
            "resource": {kind: resources},
        }
        return [json.dumps(document, indent=2) + "\n"]


def _json(key: str, items: Iterable[object]) -> str:
    """An object with a list, each item on a line."""
    lines = ",\n".join(map(json.dumps, items))
    return f'{{"{key}": [\n{lines}\n]}}\n'


def _identifier(name: str) -> str:
    """A Terraform name: a hash keeps names apart that differ only in replaced characters."""
    digest = hashlib.sha256(name.lower().encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]', '_', name)}_{digest}"


def open_tool(fmt: Format, zones: Sequence[str], ttl: int, provider: Provider) -> PerZoneRenderer:
    """The renderer of a tool's files; `provider` is for Terraform."""
    if fmt is Format.TERRAFORM:
        return TerraformRenderer(zones, ttl, provider)
    renderers: dict[Format, type[PerZoneRenderer]] = {
        Format.OCTODNS: OctodnsRenderer,
        Format.DNSCONTROL: DnscontrolRenderer,
        Format.ROUTE53: Route53Renderer,
        Format.POWERDNS: PowerdnsRenderer,
    }
    return renderers[fmt](zones, ttl)
