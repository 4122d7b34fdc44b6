"""The formats, what each implements, and the text of DNS records and their zones (RFC 1035)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import ClassVar, Generic, NamedTuple, TypeVar

from dkimctl.errors import UsageError
from dkimctl.models import SOUND, USABLE, DnsRecord, Result
from dkimctl.names import zone_finder
from dkimctl.text import MAX_STRING, character_strings, printable, utf8

ItemT = TypeVar("ItemT")

# Bytes that need no escape in a quoted string, and in a name.
_PLAIN_IN_QUOTES = bytes(set(range(0x20, 0x7F)) - set(b'"\\'))
_PLAIN_IN_NAME = bytes(byte for byte in range(0x80) if chr(byte).isalnum()) + b"_.-"

_PLAIN_NAME = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]"

_MAX_LISTED = 10  # names in one error


class Format(StrEnum):
    """What `--format` of `register` and `show-dns` takes.

    A new format is a member here and a class. One for programs stands in `data`, and `open_data`
    makes it; one for a DNS tool stands in `dns_tools`, `open_tool` makes it, and PER_ZONE names it.
    Any other is made by `open_results`.
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


# Windows devices, which no file there can be named after, with any suffix.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_MAX_STEM = 200  # characters; a file name may have 255 bytes

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


class PerZoneRenderer(ABC):
    """A format that makes one or more files for each zone with records; `ttl` is in seconds."""

    suffix: ClassVar[str]  # of the files' names

    def __init__(self, zones: Sequence[str], ttl: int) -> None:
        self._zones = zones
        self._ttl = ttl
        self._records: list[DnsRecord] = []

    def add(self, result: Result) -> str:
        """Add the record of `result`, if it may be published; its text comes later."""
        record = publishable(result)
        if record is not None:
            self._records.append(record)
        return ""

    def files(self) -> Iterator[ZoneFile]:
        """The files. Raises UsageError that lists the records outside all zones."""
        for zone, records in by_zone(self._records, self._zones).items():
            stem = self.stem(zone)
            for number, part in enumerate(self._parts(records), start=1):
                counted = f".{number}" if number > 1 else ""
                name = f"{stem}{counted}.{self.suffix}"
                yield ZoneFile(name, self._text(zone, part), zone, len(part))

    def stem(self, zone: str) -> str:
        """What the names of the zone's files begin with: its name, if systems allow that."""
        return file_stem(zone)

    def _parts(self, records: Sequence[DnsRecord]) -> Iterable[Sequence[DnsRecord]]:
        """The records of each file of a zone."""
        return [records]

    @abstractmethod
    def _text(self, zone: str, records: Sequence[DnsRecord]) -> Iterable[str]:
        """The text of a file, in chunks."""


def file_stem(zone: str) -> str:
    """`zone` as the start of a file name that every system allows, Windows included."""
    if len(zone) > _MAX_STEM:
        import hashlib

        digest = hashlib.sha256(zone.encode()).hexdigest()[:8]
        zone = f"{zone[:_MAX_STEM]}-{digest}"
    return f"_{zone}" if _DEVICE.match(zone) else zone


def render_all(renderer: Renderer[ItemT], items: Iterable[ItemT]) -> Iterator[str]:
    """The whole text for `items`, in chunks."""
    yield renderer.begin()
    yield from filter(None, map(renderer.add, items))
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
    if not utf8(value).translate(None, _PLAIN_IN_QUOTES):  # almost always
        text = f'"{value[:MAX_STRING]}'
        for at in range(MAX_STRING, len(value), MAX_STRING):
            text += f'" "{value[at : at + MAX_STRING]}'
        return f'{text}"'
    return " ".join(f'"{_escaped(part, _PLAIN_IN_QUOTES)}"' for part in character_strings(value))


def owner_name(fqdn: str) -> str:
    """`fqdn` as an absolute name in a master file, with a trailing dot; dots separate labels."""
    if re.fullmatch(_PLAIN_NAME, fqdn):  # almost always
        return f"{fqdn}."
    return _escaped(utf8(fqdn.removesuffix(".")), _PLAIN_IN_NAME) + "."


def relative_name(fqdn: str, zone: str, *, apex: str) -> str:
    """`fqdn`, which is in `zone`, relative to it; `apex` for the zone itself."""
    return fqdn[: -len(zone) - 1] or apex


def by_zone(records: Iterable[DnsRecord], zones: Sequence[str]) -> dict[str, list[DnsRecord]]:
    """The records of each enclosing zone, in order; zones without records are left out.

    Raises UsageError that lists the records outside all of `zones`.
    """
    find_zone = zone_finder(zones)
    records_of: dict[str, list[DnsRecord]] = {}
    outside = []
    for record in records:
        zone = find_zone(record.fqdn)
        if zone is None:
            outside.append(record.fqdn)
        else:
            records_of.setdefault(zone, []).append(record)
    if outside:
        raise outside_zones(outside, zones)
    return records_of


def outside_zones(names: Sequence[str], zones: Sequence[str]) -> UsageError:
    """The error that lists `names`, which are outside all of `zones`."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    return UsageError(
        f"not in {which}: {', '.join(map(printable, names[:_MAX_LISTED]))}{more}",
        hint="select only the domains of that zone, or name the other zones too",
    )


def _escaped(data: bytes, plain: bytes) -> str:
    texts = [f"\\{byte:03d}" for byte in range(256)]
    texts[ord('"')], texts[ord("\\")] = '\\"', "\\\\"
    for byte in plain:
        texts[byte] = chr(byte)
    return "".join(texts[byte] for byte in data)
