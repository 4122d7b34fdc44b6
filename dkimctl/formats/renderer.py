"""The formats, and what each implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from dkimctl.models import SOUND, USABLE, DnsRecord, Result

ItemT = TypeVar("ItemT")


class Format(StrEnum):
    """What `--format` of `register` and `show-dns` takes; CONTRIBUTING.md tells how to add one."""

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


class Renderer(ABC, Generic[ItemT]):
    """A format that makes one text, from items (results or checks) added one by one.

    The text is what `begin`, each `add` and `end` return, in that order; newlines are included.
    """

    def begin(self) -> str:
        """The text before the first item."""
        return ""

    @abstractmethod
    def add(self, item: ItemT) -> str:
        """The text of `item`; "" if it has none yet."""

    def end(self) -> Iterable[str]:
        """The rest of the text, in chunks. Raises UsageError for records outside all zones."""
        return ()


def render_all(renderer: Renderer[ItemT], items: Iterable[ItemT]) -> Iterator[str]:
    """The whole text for `items`, in chunks, none before the first item."""
    texts = map(renderer.add, items)
    first = next(texts, "")
    yield renderer.begin()
    yield first
    yield from filter(None, texts)
    yield from renderer.end()


def publishable(result: Result) -> DnsRecord | None:
    """The record of `result` if it may be put into DNS; all formats for DNS tools ask here."""
    return result.registration.record if result.outcome in USABLE else None


def sound_record(result: Result) -> DnsRecord | None:
    """The same, and of what is retired: a record that may be checked, and deleted."""
    return result.registration.record if result.outcome in SOUND else None
