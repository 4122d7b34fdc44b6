"""Records for the DNS: master files, nsupdate scripts, and files of other tools: a class a tool."""

from __future__ import annotations

import itertools
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from dkimctl.dkim import character_strings
from dkimctl.formats.renderer import Format, Provider, Renderer, publishable, sound_record
from dkimctl.models import DnsRecord, Result
from dkimctl.names import outside_zones, zone_finder
from dkimctl.text import printable, utf8

# Octets of changes in an update, which is one DNS message of at most 65,535 octets: the rest is
# for its header, the zone's name, and a signature (TSIG) with two names.
_MAX_CHANGES = 64_000
_FIXED_SIZE = 10  # type, class, TTL and length of the data (RFC 1035 section 3.2.1)
# Half of the API's 1,000 records and 32,000 characters of values: an UPSERT counts twice.
_ROUTE53_RECORDS = 500
_ROUTE53_CHARACTERS = 16_000
# What needs an escape in a master file (RFC 1035 section 5.1).
_NOT_IN_QUOTES, _NOT_IN_NAME = r'[^ -~]|["\\]', r"[^A-Za-z0-9_.-]"
# Windows devices, which no file there can be named after, with any suffix.
_DEVICE = r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)"


class ZoneFile(NamedTuple):
    """A file about one zone."""

    name: str  # such as `example.com.yaml`
    chunks: Iterable[str]  # of its text
    zone: str
    records: int


class PerZoneRenderer(Renderer[Result]):
    """A format that makes one or more files for each zone with records; `ttl` is in seconds.

    Its text is that of all `files`: of the only one, where they need no directory. Without `ttl`,
    records are deleted.
    """

    suffix: ClassVar[str]  # of the files' names
    comment: ClassVar[str] = ""  # what begins one that ends with its line; "": there is none
    #: By FQDN, lines of a master file for a comment: without these records, this one would end what
    #: a wildcard answers.
    add_first: Mapping[str, Sequence[str] | None] = MappingProxyType({})

    def __init__(self, zones: Sequence[str], ttl: int | None) -> None:
        self._zones = zones
        self._ttl = ttl
        self._records: list[DnsRecord] = []

    def add(self, item: Result) -> str:
        record = sound_record(item) if self._ttl is None else publishable(item)
        if record is None:
            return ""
        record = record._replace(type=record.type.upper())
        if not self._zones:
            return "".join(self._text("", [record]))
        self._records.append(record)
        return ""

    def end(self) -> Iterator[str]:
        for file in self.files():
            yield from file.chunks

    def files(self) -> Iterator[ZoneFile]:
        """The files. Raises UsageError that lists the records outside all zones."""
        find_zone = zone_finder(self._zones)
        by_zone, outside = dict[str, list[DnsRecord]](), list[str]()
        for record in self._records:
            if (zone := find_zone(record.fqdn)) is None:
                outside.append(record.fqdn)
            else:
                by_zone.setdefault(zone, []).append(record)
        if outside:
            raise outside_zones(outside, self._zones)
        for zone, records in by_zone.items():
            stem = self.stem(zone)
            for number, part in enumerate(self._parts(records), start=1):
                name = f"{stem}{f'.{number}' if number > 1 else ''}.{self.suffix}"
                text = itertools.chain(self._comments_for(part), self._text(zone, part))
                yield ZoneFile(name, text, zone, len(part))

    def _comments_for(self, records: Sequence[DnsRecord]) -> Iterator[str]:
        for record in records if self.comment else ():
            if lines := self.add_first.get(record.fqdn):
                yield f"{self.comment} {record.fqdn} will end what a wildcard answers; first add:\n"
                yield from (f"{self.comment} {line}\n" for line in lines)

    def stem(self, zone: str) -> str:
        """What the names of the zone's files begin with: its name, if Windows allows that."""
        return f"_{zone}" if re.match(_DEVICE, zone) else zone

    def _parts(self, records: Sequence[DnsRecord]) -> Iterable[Sequence[DnsRecord]]:
        """The records of each file of a zone."""
        return [records]

    @abstractmethod
    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterable[str]:
        """The text of a file, in chunks; for no zone, of one record with its absolute name."""


class ZoneRenderer(PerZoneRenderer):
    """Master-file lines (RFC 1035 section 5): a comment and the records of each result.

    With `zones`, a file for each, for $INCLUDE in its zone file: names are relative to the zone.
    With `origin`, one text with names relative to that zone. Without either, names are absolute.
    """

    suffix = "zone"
    comment = ";"

    def __init__(self, zones: Sequence[str], ttl: int | None, origin: str | None = None) -> None:
        super().__init__(zones if origin is None else [origin], ttl)
        self._is_included = origin is None
        self._comments: dict[str, str] = {}

    def add(self, item: Result) -> str:
        if (record := publishable(item)) is None:
            return ""
        registration, text = item.registration, item.registration.sign_domain
        if registration.selector is not None:
            text += f" selector {registration.selector}"
        if registration.key_len is not None:
            text += f", {registration.key_len} bits"
        if registration.code is not None:
            text += f", result {registration.code} {registration.message or ''}"
        # ASCII only: the encoding of a master file depends on the name server.
        comment = printable(text.rstrip()).encode("ascii", "backslashreplace").decode("ascii")
        if not self._zones:  # the record is written now
            self._comments.clear()
        self._comments[record.fqdn] = comment
        return super().add(item)

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        if zone and self._is_included:
            yield f"; DKIM records of {zone}, to $INCLUDE in its zone file\n"
        if zone:
            # It is only for this file: after an $INCLUDE, the old one is back (RFC 1035, 5.1).
            yield f"$ORIGIN {owner_name(zone)}\n"
        for record in records:
            name = owner_name(record.fqdn)
            if zone:
                name = owner_name(relative_name(record.fqdn, zone, apex="@")).removesuffix(".")
            yield f"; {self._comments[record.fqdn]}\n"
            for data in record_data(record):
                yield f"{name} {self._ttl} IN {record.type} {data}\n"


class ValueRenderer(Renderer[Result]):
    """The value of the one publishable record, to paste into a form; of several, with the FQDN."""

    def __init__(self) -> None:
        self._first: str | None = None  # the first line; "" as soon as there is a second

    def add(self, item: Result) -> str:
        if (record := publishable(item)) is None:
            return ""
        line = f"{printable(record.fqdn)}\t{printable(record.value)}\n"
        if self._first is None:
            self._first = line
            return ""
        lines, self._first = self._first + line, ""
        return lines

    def end(self) -> Iterator[str]:
        if self._first:
            yield self._first.partition("\t")[2]


class NsupdateRenderer(PerZoneRenderer):
    """A script for BIND's nsupdate and Knot's knsupdate (RFC 2136).

    Its updates replace the RRset of each record; without `ttl` they delete it. With
    `zones`, each update names its zone: in one script, or in a script for each zone, whose servers
    or TSIG keys may differ. Without, nsupdate finds the zone, and each update has one record, since
    the next may be in another zone.

    Servers ignore a record for an alias, and an alias where a record is (RFC 2136 section
    3.4.2.2): the prerequisite makes such an update fail.
    """

    suffix = "nsupdate"
    comment = ";"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        """The updates of one zone, of as many records as fit each."""
        begin = f"zone {owner_name(zone)}\n" if zone else ""
        yield begin
        size = 0
        for record in records:
            # The octets of the records in a message, with uncompressed names.
            name, fixed = owner_name(record.fqdn), len(record.fqdn) + 2 + _FIXED_SIZE
            kind, other = record.type, "TXT" if record.type == "CNAME" else "CNAME"
            text = f"prereq nxrrset {name} {other}\nupdate delete {name} IN {kind}\n"
            more = 2 * fixed
            for data in record_data(record) if self._ttl is not None else ():
                more += fixed + len(data)  # which is more than on the wire, by the quotes
                text += f"update add {name} {self._ttl} IN {kind} {data}\n"
            if size + more > _MAX_CHANGES:
                yield f"send\n{begin}"
                size = 0
            size += more
            yield text
        yield "send\n"


class OctodnsRenderer(PerZoneRenderer):
    """octoDNS: the YAML for its YamlProvider, names in the order that octoDNS requires."""

    suffix = "yaml"
    comment = "#"

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
            is_text = record.type == "TXT"
            values = [record.value.replace(";", "\\;")] if is_text else record_data(record)
            yield f"{json.dumps(name)}:\n  ttl: {self._ttl}\n  type: {record.type}\n"
            key, data = ("value", values[0]) if len(values) == 1 else ("values", values)
            yield f"  {key}: {json.dumps(data)}\n"


class DnscontrolRenderer(PerZoneRenderer):
    """DNSControl: a D_EXTEND for a dnsconfig.js; without a trailing comma, which ES5 lacks."""

    suffix = "js"
    comment = "//"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterator[str]:
        yield f"D_EXTEND({json.dumps(zone)}"
        for record in records:
            name = json.dumps(relative_name(record.fqdn, zone, apex="@"))
            for data in [record.value] if record.type == "TXT" else record_data(record):
                yield f",\n  {record.type}({name}, {json.dumps(data)}, TTL({self._ttl}))"
        yield "\n);\n"


class Route53Renderer(PerZoneRenderer):
    """Route 53: change batches for `aws route53 change-resource-record-sets`, one in each file."""

    suffix = "json"

    def _parts(self, records: Sequence[DnsRecord]) -> Iterator[Sequence[DnsRecord]]:
        start = characters = 0
        for end, record in enumerate(records):
            more = sum(map(len, record_data(record)))
            is_full = end - start == _ROUTE53_RECORDS
            if is_full or (end > start and characters + more > _ROUTE53_CHARACTERS):
                yield records[start:end]
                start, characters = end, 0
            characters += more
        yield records[start:]

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:  # noqa: ARG002
        changes = []
        for record in records:
            rrset = {"Name": owner_name(record.fqdn), "Type": record.type, "TTL": self._ttl}
            values = {"ResourceRecords": [{"Value": data} for data in record_data(record)]}
            changes.append({"Action": "UPSERT", "ResourceRecordSet": rrset | values})
        return [_json("Changes", changes)]


class PowerdnsRenderer(PerZoneRenderer):
    """PowerDNS: the body of PATCH /api/v1/servers/SERVER/zones/ZONE of its HTTP API."""

    suffix = "json"

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:  # noqa: ARG002
        rrsets = []
        for record in records:
            rrset = {"name": owner_name(record.fqdn), "type": record.type, "ttl": self._ttl}
            records_of = [{"content": it, "disabled": False} for it in record_data(record)]
            rrsets.append({**rrset, "changetype": "REPLACE", "records": records_of})
        return [_json("rrsets", rrsets)]


# How Terraform's resources of a provider are written: their kind, the argument that has the zone's
# identifier, what that is, and the argument that has the record's value.
_RESOURCES: Mapping[Provider, tuple[str, str, str, str]] = {
    Provider.ROUTE53: ("aws_route53_record", "zone_id", "zone's ID", "records"),
    Provider.CLOUDFLARE: ("cloudflare_dns_record", "zone_id", "zone's ID", "content"),
    Provider.GOOGLE: ("google_dns_record_set", "managed_zone", "managed zone's name", "rrdatas"),
}


class TerraformRenderer(PerZoneRenderer):
    """Terraform, in its JSON syntax: a resource for each record, and a variable for the zone."""

    suffix = "tf.json"

    def __init__(self, zones: Sequence[str], ttl: int | None, provider: Provider) -> None:
        super().__init__(zones, ttl)
        self._provider = provider

    def _text(self, zone: str, records: Sequence[DnsRecord]) -> list[str]:
        kind, zone_argument, identifier, value_argument = _RESOURCES[self._provider]
        variable = f"zone_{_identifier(zone)}"
        resources = {}
        for record in records:
            values = record_data(record)
            if record.type == "TXT" and self._provider is Provider.ROUTE53:
                # It adds the outer quotes, but not those between two strings.
                strings = [part.decode() for part in character_strings(record.value)]
                values = ['""'.join(re.sub(r'(["\\])', r"\\\1", part) for part in strings)]
            elif record.type != "TXT" and self._provider is not Provider.GOOGLE:
                values = [name.removesuffix(".") for name in values]
            # Terraform's template markers.
            values = [text.replace("${", "$${").replace("%{", "%%{") for text in values]
            is_single = self._provider is Provider.CLOUDFLARE  # a resource for each value
            for number, data in enumerate(values if is_single else [values]):
                more = f"_{number + 1}" if number else ""
                resources[f"dkim_{_identifier(record.fqdn)}{more}"] = {
                    "name": f"{record.fqdn}." if self._provider is Provider.GOOGLE else record.fqdn,
                    "type": record.type,
                    "ttl": self._ttl,
                    zone_argument: f"${{var.{variable}}}",
                    value_argument: data,
                }
        description = f"The {identifier} of {zone} at the provider"
        document = {
            "variable": {variable: {"type": "string", "description": description}},
            "resource": {kind: resources},
        }
        return [json.dumps(document, indent=2) + "\n"]


def txt_data(value: str) -> str:
    """`value` as TXT data in a master file: quoted strings, separated by a space."""
    parts = (_escaped(part, _NOT_IN_QUOTES) for part in character_strings(value))
    return " ".join(f'"{part}"' for part in parts)


def record_data(record: DnsRecord) -> list[str]:
    """The data of each record at the name, as in a master file: of CNAME and NS, a name each."""
    if record.type == "TXT":
        return [txt_data(record.value)]
    return [owner_name(name) for name in record.value.split()]


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name in a master file, with a trailing dot; dots separate labels."""
    return f"{_escaped(utf8(fqdn.removesuffix('.')), _NOT_IN_NAME)}."


def _escaped(data: bytes, pattern: str) -> str:
    """Text for a master file, with escapes for the bytes that `pattern` matches."""

    def escape(match: re.Match[str]) -> str:
        return f"\\{match[0]}" if match[0] in '"\\' else f"\\{ord(match[0]):03d}"

    return re.sub(pattern, escape, data.decode("latin-1"))


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which is in `zone`, relative to it; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def _json(key: str, items: Iterable[object]) -> str:
    """An object with a list, each item on a line."""
    lines = ",\n".join(map(json.dumps, items))
    return f'{{"{key}": [\n{lines}\n]}}\n'


def _identifier(name: str) -> str:
    """A Terraform name: a hash keeps names apart that differ only in replaced characters."""
    import hashlib  # loads OpenSSL

    digest = hashlib.sha256(name.lower().encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]', '_', name)}_{digest}"


# Those that need no more than zones and TTL.
RENDERERS: Mapping[Format, type[PerZoneRenderer]] = {
    Format.NSUPDATE: NsupdateRenderer,
    Format.OCTODNS: OctodnsRenderer,
    Format.DNSCONTROL: DnscontrolRenderer,
    Format.ROUTE53: Route53Renderer,
    Format.POWERDNS: PowerdnsRenderer,
}
