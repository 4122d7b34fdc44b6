"""The formats, what each implements, and the text of DNS records and their zones (RFC 1035)."""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Generic, NamedTuple, TypeVar

from dkimctl.dkim import character_strings
from dkimctl.errors import UsageError
from dkimctl.models import SOUND, USABLE, DnsRecord, Result
from dkimctl.names import zone_finder
from dkimctl.text import listed, printable, utf8

ItemT = TypeVar("ItemT")

_ESCAPES = [f"\\{byte:03d}" for byte in range(256)]
_ESCAPES[ord('"')], _ESCAPES[ord("\\")] = '\\"', "\\\\"
# What each byte becomes in a quoted string, and in a name.
_IN_QUOTES = [
    chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\' else escape
    for byte, escape in enumerate(_ESCAPES)
]
_PLAIN_IN_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_IN_NAME = [
    chr(byte) if chr(byte) in _PLAIN_IN_NAME else escape for byte, escape in enumerate(_ESCAPES)
]
# Windows devices, which no file there can be named after, with any suffix.
_DEVICE = r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)"


class Format(StrEnum):
    """What `--format` of `register` and `show-dns` takes.

    A new format is a member here and a class, which `open_results` makes. One for programs stands
    in `data`, and `open_data` makes it; one for a DNS tool in `dns_tools`, and PER_ZONE names it.
    """

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    ZONE = "zone"
    NSUPDATE = "nsupdate"
    OCTODNS = "octodns"
    DNSCONTROL = "dnscontrol"
    ROUTE53 = "route53"
    POWERDNS = "powerdns"
    TERRAFORM = "terraform"
    VALUE = "value"


# The formats that no DNS server or tool reads.
NOT_FOR_DNS = (Format.TABLE, Format.JSON, Format.JSONL, Format.CSV, Format.MARKDOWN)
# The formats whose files are always about one zone each.
PER_ZONE = (
    Format.OCTODNS, Format.DNSCONTROL, Format.ROUTE53, Format.POWERDNS, Format.TERRAFORM
)  # fmt: skip


class CheckFormat(StrEnum):
    """What `--format` of `check-dns` takes."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PROMETHEUS = "prometheus"
    NAGIOS = "nagios"


class KeyFormat(StrEnum):
    """What `--format` of `list` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class PublicationFormat(StrEnum):
    """What `--format` of `publish` takes."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


class Provider(StrEnum):
    """The provider whose resources `terraform` writes."""

    ROUTE53 = "route53"
    CLOUDFLARE = "cloudflare"
    GOOGLE = "google"


class TableLayout(NamedTuple):
    """How a table looks, and what it leaves out."""

    width: int = 80  # columns
    colour: bool = False
    wide: bool = False  # with more columns
    only_attention: bool = False  # without the rows that need none
    most_rows: int | None = None  # of checks; if there are more, `only_attention`
    shown_by: str = "--format table"  # what shows all
    most_alike: int | None = None  # rows with the same reason that are shown, not only counted
    is_plan: bool = False  # with totals, and without records
    encoding: str = "utf-8"  # of the output


DEFAULT_LAYOUT = TableLayout()


class Renderer(ABC, Generic[ItemT]):
    """A format that makes one text, from items (results or checks) added one by one.

    The text is what `begin`, each `add` and `end` return, in that order; newlines are included.
    """

    def begin(self) -> str:
        """The text before the first item."""
        return ""

    @abstractmethod
    def add(self, item: ItemT) -> str:
        """The text of `item`; "" if it has none yet.

        Raises UsageError for a record outside the origin.
        """

    def end(self) -> Iterable[str]:
        """The rest of the text, in chunks. Raises UsageError for records outside all zones."""
        return ()


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


def render_all(renderer: Renderer[ItemT], items: Iterable[ItemT]) -> Iterator[str]:
    """The whole text for `items`, in chunks, none before the first item."""
    texts = map(renderer.add, items)
    first = next(texts, "")
    yield renderer.begin()
    yield first
    yield from filter(None, texts)
    yield from renderer.end()


def publishable(result: Result) -> DnsRecord | None:
    """The record of `result` if it may be put into DNS, else None.

    Every format for DNS tools takes its records from here.
    """
    return result.registration.record if result.outcome in USABLE else None


def sound_record(result: Result) -> DnsRecord | None:
    """The same, and of what is retired: a record that may be checked, and deleted."""
    return result.registration.record if result.outcome in SOUND else None


def txt_data(value: str) -> str:
    """`value` as TXT data in a master file: quoted strings, separated by a space."""
    parts = (part.decode("latin-1") for part in character_strings(value))
    return " ".join(f'"{part.translate(_IN_QUOTES)}"' for part in parts)


def record_data(record: DnsRecord) -> list[str]:
    """The data of each record at the name, as in a master file: of CNAME and NS, a name each."""
    if record.type == "TXT":
        return [txt_data(record.value)]
    return [owner_name(name) for name in record.value.split()]


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name in a master file, with a trailing dot; dots separate labels."""
    return f"{utf8(fqdn.removesuffix('.')).decode('latin-1').translate(_IN_NAME)}."


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which is in `zone`, relative to it; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def outside_zones(names: Sequence[str], zones: Sequence[str]) -> UsageError:
    """The error that lists `names`, which are outside all of `zones`."""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    return UsageError(
        f"not in {which}: {listed([*map(printable, names)])}",
        hint="select only the domains of that zone, or name the other zones too",
    )
