"""A sheet in a language and a format: as text, Markdown (CommonMark), HTML or JSON.

The sentences stand in `texts`, the layout in `templates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from dkimctl.handoff.providers import Trait, ValueForm
from dkimctl.handoff.sheet import Sheet, SheetRecord, SheetZone, Timing, Trouble
from dkimctl.handoff.words import (
    Field,
    Language,
    SheetFormat,
    Words,
    columns,
    heading,
    item,
    unbroken,
    wrapped,
)
from dkimctl.render.data import json_line
from dkimctl.render.html.page import environment
from dkimctl.render.keys import written_time
from dkimctl.render.renderer import txt_data
from dkimctl.render.table import code, fenced
from dkimctl.text.dns_names import readable
from dkimctl.text.escaping import character_strings, printable

_TROUBLES = {Trouble.NO_ANSWER: "zone_no_answer", Trouble.NO_ZONE: "zone_no_zone"}


def render_sheet(sheet: Sheet, fmt: SheetFormat, language: Language) -> str:
    """The text of a sheet; JSON has no language."""
    if fmt is SheetFormat.JSON:
        return "".join(_json(sheet))
    if fmt is SheetFormat.HTML:
        from markupsafe import Markup

        name = "sheet.html"
        words = Words(
            language, lambda data: Markup("<code>{}</code>").format(printable(data)), Markup
        )
    elif fmt is SheetFormat.MARKDOWN:
        # All data stands in code, so that nothing in it acts as Markdown or HTML.
        name, words = "sheet.md", Words(language, code)
    else:
        # For an email: 72 columns, but for values, which are never broken.
        name, words = "sheet.txt", Words(language, unbroken)
    templates = environment(__package__)
    templates.filters |= {"code": code, "fenced": lambda text: fenced([printable(text)])}
    templates.filters |= {"heading": heading, "wrap": wrapped, "item": item, "columns": columns}
    return templates.get_template(name).render(page=make_page(sheet, words), language=language)


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


def make_page(sheet: Sheet, words: Words) -> Page:
    # The texts that differ between records to add and to delete.
    if sheet.is_removal:
        kind, check, nevers = "delete_", ["delete_check"], ["delete_other", "delete_changed"]
    else:
        kind, check = "", ["check_us"]
        nevers = ["never_break", "never_others", "never_second", "never_cname"]
    if len(sheet.records) > 1:
        check.append("check_first")
    parts: list[ZonePart] = []
    number = 0
    for zone in sheet.zones:
        parts.append(_zone_part(zone, words, sheet, number))
        number += len(zone.records)
    first = sheet.records[0].fqdn
    return Page(
        words.language,
        words.fill(f"{kind}title"),
        list(_lead(sheet, words, kind)),
        parts,
        words.fill("never"),
        [words.fill(key) for key in nevers],
        words.fill("check"),
        words.paragraph(*check),
        [
            Field(words.fill("unix"), f"dig +short TXT {first}"),
            Field(words.fill("windows"), f"nslookup -type=TXT {first}"),
            Field("PowerShell", f"Resolve-DnsName -Type TXT {first}"),
        ],
        words.fill("made", date=words.date(sheet.made_at)),
    )


def _lead(sheet: Sheet, words: Words, kind: str) -> Iterator[str]:
    domains = list(dict.fromkeys(readable(record.sign_domain) for record in sheet.records))
    if len(domains) > 4:  # named in the first sentence
        named = words.fill("many_domains", count=len(domains))
    else:
        named = words.names(domains)
    count = len(sheet.records)
    about = f"{kind}about_one" if count == 1 else f"{kind}about_many"
    yield words.fill(about, count=count, domains=named)
    yield words.fill(f"{kind}harmless")
    if sheet.contact:
        yield words.say("contact", contact=sheet.contact)
    else:
        yield words.fill("contact_none")


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
        [] if sheet.is_removal else list(_panel_steps(zone, words)),
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
    return [Field(words.fill("strings_enter"), strings), Field(words.fill("value_other"), whole)]


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


def _panel_steps(zone: SheetZone, words: Words) -> Iterator[str]:
    """The texts, in the order in which one needs them."""
    provider = zone.provider
    if provider:
        if provider.value_field:
            yield words.fill(
                "fields", name_field=provider.name_field, value_field=provider.value_field
            )
        elif provider.name_field:
            yield words.fill("field", name_field=provider.name_field)
    if zone.place.zone:
        doubled = f"{zone.records[0].fqdn}.{zone.name}"
        adds_zone = provider and Trait.ADDS_ZONE in provider.traits
        key = "host_adds" if adds_zone else "host_mostly"
        yield words.say(key, zone=f".{zone.name}", doubled=doubled)
    if provider is None:
        yield words.fill("no_quotes")
        yield words.fill("maybe_strings")
    elif provider.form is ValueForm.STRINGS:
        yield words.fill("with_quotes")
    else:
        adds_quotes = Trait.ADDS_QUOTES in provider.traits
        yield words.fill("adds_quotes" if adds_quotes else "no_quotes")
        if Trait.SPLITS in provider.traits:
            yield words.fill("splits")
        elif provider.limit is None:
            yield words.fill("maybe_strings")
        if Trait.TEXT_MODE in provider.traits:
            yield words.fill("text_mode", limit=provider.limit)
    if provider and Trait.PROXIES in provider.traits:
        yield words.fill("proxies")


def _json(sheet: Sheet) -> Iterator[str]:
    """One object; times are UTC. null: not known, or none."""
    yield f'{{"made_at": {json_line(_utc(sheet.made_at))}'
    yield f', "action": {json_line("delete" if sheet.is_removal else "add")}'
    yield f', "contact": {json_line(sheet.contact or None)}, "zones": ['
    for number, zone in enumerate(sheet.zones):
        yield f"{',' if number else ''}\n{json_line(_json_zone(zone, sheet.ttl))}"
    yield "\n]}\n"


def _json_zone(zone: SheetZone, ttl: int) -> dict[str, object]:
    return {
        "zone": zone.place.zone or None,
        "name": readable(zone.name),
        "provider": zone.provider.key if zone.provider else None,
        "name_servers": list(zone.place.name_servers),
        "trouble": zone.place.trouble or None,
        "reason": zone.place.reason or None,
        "records": [
            {
                "sign_domain": record.sign_domain,
                "selector": record.selector,
                "host": record.host,
                "fqdn": record.fqdn,
                "type": "TXT",
                "ttl": ttl,
                "value": record.value,
                "strings": [string.decode() for string in character_strings(record.value)],
                "enter": record.form,
                "is_too_long": record.is_too_long,
                "timing": record.timing,
                "starts_at": _utc(record.starts_at),
                "due": _utc(record.due),
            }
            for record in zone.records
        ],
    }


def _utc(time: datetime | None) -> str | None:
    return written_time(time.astimezone(UTC)) if time else None
