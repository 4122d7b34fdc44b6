"""What stands on a sheet in a language, for every format to lay out.

`text` is written with the markup of the format; what is only data is raw, for the format to escape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dkimctl.publication.handoff.places import Trouble
from dkimctl.publication.handoff.providers import ValueForm
from dkimctl.publication.handoff.sheet import Sheet, SheetRecord, SheetZone, Timing
from dkimctl.render.handoff.steps import panel_steps
from dkimctl.render.handoff.words import Words
from dkimctl.render.records import txt_data
from dkimctl.text.idn import readable

_MOST_DOMAINS = 4  # named in the first sentence
_TROUBLES = {Trouble.NO_ANSWER: "zone_no_answer", Trouble.NO_ZONE: "zone_no_zone"}


class Field(NamedTuple):
    """A label, and raw text to copy or read; `is_link`: it is an address of ours."""

    label: str
    data: str
    is_link: bool = False


class RecordPart(NamedTuple):
    """A record; of the two `values`, the first is to be entered. `fields` has the rest."""

    title: str
    fqdn: str
    deadline: str
    is_urgent: bool
    fields: Sequence[Field]
    values: Sequence[Field]
    warning: str
    timing: str


class ZonePart(NamedTuple):
    """The records of a zone, or of a domain whose zone is not known (`label` says which)."""

    label: str
    name: str
    readable: str
    facts: Sequence[Field]
    notices: Sequence[str]
    panel: str
    steps: Sequence[str]
    records: Sequence[RecordPart]


class Page(NamedTuple):
    """The whole sheet, from top to bottom."""

    language: str
    title: str
    lead: Sequence[str]
    zones: Sequence[ZonePart]
    never: str
    nevers: Sequence[str]
    check: str
    check_lead: str
    commands: Sequence[Field]
    made: str


class _Keys(NamedTuple):
    """The keys of the texts that differ between records to add and to delete."""

    title: str
    about: str  # without _one or _many
    harmless: str
    nevers: Sequence[str]
    check: str


_ADD = _Keys(
    "title", "about", "harmless",
    ("never_break", "never_others", "never_second", "never_cname"), "check_us",
)  # fmt: skip
_DELETE = _Keys(
    "delete_title", "delete_about", "delete_harmless", ("delete_other", "delete_changed"),
    "delete_check",
)  # fmt: skip


def make_page(sheet: Sheet, words: Words) -> Page:
    keys = _DELETE if sheet.is_removal else _ADD
    parts: list[ZonePart] = []
    number = 0
    for zone in sheet.zones:
        parts.append(_zone_part(zone, words, sheet, number))
        number += len(zone.records)
    check = (keys.check, "check_first") if number > 1 else (keys.check,)
    return Page(
        words.language,
        words.fill(keys.title),
        list(_lead(sheet, words, keys)),
        parts,
        words.fill("never"),
        [words.fill(key) for key in keys.nevers],
        words.fill("check"),
        words.paragraph(*check),
        list(_commands(sheet.records[0].fqdn, words)),
        words.fill("made", date=words.date(sheet.made_at)),
    )


def _lead(sheet: Sheet, words: Words, keys: _Keys) -> Iterator[str]:
    domains = list(dict.fromkeys(readable(record.sign_domain) for record in sheet.records))
    if len(domains) > _MOST_DOMAINS:
        named = words.fill("many_domains", count=len(domains))
    else:
        named = words.names(domains)
    count = len(sheet.records)
    about = f"{keys.about}_one" if count == 1 else f"{keys.about}_many"
    yield words.fill(about, count=count, domains=named)
    yield words.fill(keys.harmless)
    if sheet.contact:
        yield words.say("contact", contact=sheet.contact)
    else:
        yield words.fill("contact_none")


def _commands(fqdn: str, words: Words) -> Iterator[Field]:
    yield Field(words.fill("unix"), f"dig +short TXT {fqdn}")
    yield Field(words.fill("windows"), f"nslookup -type=TXT {fqdn}")
    yield Field("PowerShell", f"Resolve-DnsName -Type TXT {fqdn}")


def _zone_part(zone: SheetZone, words: Words, sheet: Sheet, before: int) -> ZonePart:
    provider = zone.provider
    name = readable(zone.name)
    return ZonePart(
        words.fill("zone" if zone.place.zone else "domain"),
        zone.name,
        name if name != zone.name else "",
        list(_facts(zone, words)),
        list(_notices(zone, words)),
        words.fill("panel_of", provider=provider.name) if provider else words.fill("panel"),
        [] if sheet.is_removal else list(panel_steps(zone, words)),
        [
            _record_to_delete(record, words, number)
            if sheet.is_removal
            else _record_part(record, zone, words, sheet.ttl, number)
            for number, record in enumerate(zone.records, start=before + 1)
        ],
    )


def _facts(zone: SheetZone, words: Words) -> Iterator[Field]:
    if zone.provider:
        yield Field(words.fill("provider"), zone.provider.name)
    if zone.place.name_servers:
        yield Field(words.fill("servers"), words.listed(zone.place.name_servers))
    if zone.provider:
        yield Field(words.fill("instructions"), zone.provider.source, is_link=True)


def _notices(zone: SheetZone, words: Words) -> Iterator[str]:
    if not zone.place.zone and zone.place.trouble:
        yield words.fill(_TROUBLES[zone.place.trouble])
    elif zone.place.trouble and not zone.provider:
        yield words.fill("servers_no_answer")
    names = [zone.name, *(record.sign_domain for record in zone.records)]
    if name := next((name for name in names if readable(name) != name), ""):
        yield words.say("idn", ascii=name, readable=readable(name))


def _record_part(
    record: SheetRecord, zone: SheetZone, words: Words, ttl: int, number: int
) -> RecordPart:
    limit = zone.provider.limit if zone.provider else None
    length = len(record.value)
    return RecordPart(
        words.fill("record", number=number),
        record.fqdn,
        _deadline(record, words),
        record.timing is Timing.NOW or (record.timing is Timing.LATER and record.due is None),
        [*_names(record, words), Field(words.fill("ttl"), words.duration(ttl))],
        _values(record, words),
        words.fill("too_long", length=length, limit=limit) if record.is_too_long else "",
        _timing(record, words),
    )


def _record_to_delete(record: SheetRecord, words: Words, number: int) -> RecordPart:
    title = words.fill("record", number=number)
    values = [Field(words.fill("delete_value"), record.value)]
    fields = list(_names(record, words))
    return RecordPart(title, record.fqdn, "", False, fields, values, "", "")


def _names(record: SheetRecord, words: Words) -> Iterator[Field]:
    yield Field(words.fill("type"), "TXT")
    yield Field(words.fill("host"), record.host)
    if record.host != record.fqdn:
        yield Field(words.fill("fqdn"), record.fqdn)
    if (name := readable(record.fqdn)) != record.fqdn:
        yield Field(words.fill("readable"), name)


def _values(record: SheetRecord, words: Words) -> list[Field]:
    whole, strings = record.value, txt_data(record.value)
    if record.form is ValueForm.WHOLE:
        return [
            Field(words.fill("value_enter"), whole),
            Field(words.fill("strings_other"), strings),
        ]
    return [
        Field(words.fill("strings_enter"), strings),
        Field(words.fill("value_other"), whole),
    ]


def _deadline(record: SheetRecord, words: Words) -> str:
    if record.timing is Timing.DISABLED:
        return ""
    if record.due is None:
        return words.fill("at_once")
    return words.fill("by", due=words.date(record.due))


def _timing(record: SheetRecord, words: Words) -> str:
    if record.timing is not Timing.LATER or record.starts_at is None:
        return words.fill(record.timing)
    return words.paragraph("later", "late", start=words.time(record.starts_at))
