"""The output formats, and the way from each to its module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from dkimctl.models.registration import DnsRecord, Result


class Format(StrEnum):
    """What `--format` takes."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    ZONE = "zone"
    NSUPDATE = "nsupdate"
    OCTODNS = "octodns"
    DNSCONTROL = "dnscontrol"
    ROUTE53 = "route53"
    POWERDNS = "powerdns"
    TERRAFORM = "terraform"
    VALUE = "value"


class Provider(StrEnum):
    """Whose resources `terraform` writes."""

    ROUTE53 = "route53"
    CLOUDFLARE = "cloudflare"
    GOOGLE = "google"


# Each file of these is about one zone; the ends of their names.
PER_ZONE = {
    Format.OCTODNS: "yaml",
    Format.DNSCONTROL: "js",
    Format.ROUTE53: "json",
    Format.POWERDNS: "json",
    Format.TERRAFORM: "tf.json",
}


class ZoneFile(NamedTuple):
    """A file about one zone: its name, such as `example.com.yaml`, and chunks of its text."""

    name: str
    chunks: Iterable[str]


def render(
    fmt: Format,
    results: Iterable[Result],
    *,
    ttl: int = 3600,
    origin: str | None = None,
    zones: Sequence[str] = (),
    width: int = 80,
    colour: bool = False,
    only_attention: bool = False,
) -> Iterator[str]:
    """Chunks of text, newlines included, that show `results` in `fmt`, which is not per zone.

    Every format but the table takes `results` one by one and keeps none, unless there are
    `zones` to sort them by (nsupdate). `ttl` is in seconds (zone, nsupdate); with `origin`
    names are relative to that zone (zone). `width` is in columns, `colour` adds ANSI codes, and
    `only_attention` leaves out the rows that need none (table).
    """
    # Each format's module is imported when it is chosen: rich alone takes 20 ms.
    match fmt:
        case Format.TABLE:
            from dkimctl.render.table import render_table

            return render_table(results, width, colour=colour, only_attention=only_attention)
        case Format.JSON:
            from dkimctl.render.json_object import render_json

            return render_json(results)
        case Format.JSONL:
            from dkimctl.render.jsonl import render_jsonl

            return render_jsonl(results)
        case Format.CSV:
            from dkimctl.render.csv_lines import render_csv

            return render_csv(results)
        case Format.ZONE:
            from dkimctl.render.zone import render_zone

            return render_zone(results, ttl, origin)
        case Format.NSUPDATE:
            from dkimctl.render.nsupdate import render_nsupdate

            return render_nsupdate(results, ttl, zones)
        case Format.VALUE:
            from dkimctl.render.value import render_value

            return render_value(results)
        case _:
            raise ValueError(f"{fmt} is written for each zone: see render_zone_files")


def render_zone_files(
    fmt: Format,
    results: Iterable[Result],
    zones: Sequence[str],
    *,
    ttl: int = 3600,
    provider: Provider = Provider.ROUTE53,
) -> Iterator[ZoneFile]:
    """The files that show the publishable records of `results` in `fmt`, zone by zone.

    Raises UsageError that lists the records which lie in none of `zones`. `ttl` is in seconds;
    `provider` is for terraform.
    """
    from dkimctl.render.publishable import publishable_records
    from dkimctl.render.zone_names import by_zone

    records = [record for _, record in publishable_records(results)]
    for zone, of_zone in by_zone(records, zones).items():
        texts = _zone_texts(fmt, zone, of_zone, ttl, provider)
        for number, chunks in enumerate(texts, start=1):
            counted = f".{number}" if number > 1 else ""
            yield ZoneFile(f"{zone}{counted}.{PER_ZONE[fmt]}", chunks)


def _zone_texts(
    fmt: Format, zone: str, records: Sequence[DnsRecord], ttl: int, provider: Provider
) -> Iterator[Iterable[str]]:
    """What is to be in the file of a zone, or in each of several."""
    match fmt:
        case Format.OCTODNS:
            from dkimctl.render.octodns import render_octodns

            yield render_octodns(zone, records, ttl)
        case Format.DNSCONTROL:
            from dkimctl.render.dnscontrol import render_dnscontrol

            yield render_dnscontrol(zone, records, ttl)
        case Format.ROUTE53:
            from dkimctl.render.route53 import render_route53

            yield from ([text] for text in render_route53(records, ttl))
        case Format.POWERDNS:
            from dkimctl.render.powerdns import render_powerdns

            yield render_powerdns(records, ttl)
        case Format.TERRAFORM:
            from dkimctl.render.terraform import render_terraform

            yield render_terraform(zone, records, ttl, provider)
        case _:
            raise ValueError(f"{fmt} is not written for each zone: see render")
