"""A sheet in a language and a format: as text, Markdown (CommonMark), HTML or JSON.

The sentences stand in `texts`, the layout in `templates`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

from dkimctl.formats.data import json_line
from dkimctl.formats.keys import written_time
from dkimctl.formats.pages import environment
from dkimctl.formats.renderer import txt_data
from dkimctl.formats.table import code, fenced
from dkimctl.handoff.providers import Trait, ValueForm
from dkimctl.handoff.sheet import Sheet, SheetRecord, SheetZone, Timing, Trouble
from dkimctl.handoff.words import (
    Language,
    SheetField,
    SheetFormat,
    Words,
    columns,
    heading,
    item,
    unbroken,
    wrapped,
)
from dkimctl.names import readable
from dkimctl.text import character_strings, printable

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


def make_page(sheet: Sheet, words: Words) -> dict[str, object]:
    """What the templates show, from top to bottom."""
    # The texts that differ between records to add and to delete.
    if sheet.is_removal:
        kind, check, nevers = "delete_", ["delete_check"], ["delete_other", "delete_changed"]
    else:
        kind, check = "", ["check_us"]
        nevers = ["never_break", "never_others", "never_second", "never_cname"]
    count, first = len(sheet.records), sheet.records[0].fqdn
    if count > 1:
        check.append("check_first")
    domains = list(dict.fromkeys(readable(record.sign_domain) for record in sheet.records))
    if len(domains) > 4:  # to be named in the first sentence
        named = words.fill("many_domains", count=len(domains))
    else:
        named = words.names(domains)
    about = f"{kind}about_one" if count == 1 else f"{kind}about_many"
    if sheet.contact:
        contact = words.say("contact", contact=sheet.contact)
    else:
        contact = words.fill("contact_none")
    numbers = itertools.count(1)
    return {
        "title": words.fill(f"{kind}title"),
        "lead": [
            words.fill(about, count=count, domains=named),
            words.fill(f"{kind}harmless"),
            contact,
        ],
        "zones": [_zone_part(zone, words, sheet, numbers) for zone in sheet.zones],
        "never": words.fill("never"),
        "nevers": [words.fill(key) for key in nevers],
        "check": words.fill("check"),
        "check_lead": words.paragraph(*check),
        "commands": [
            SheetField(words.fill("unix"), f"dig +short TXT {first}"),
            SheetField(words.fill("windows"), f"nslookup -type=TXT {first}"),
            SheetField("PowerShell", f"Resolve-DnsName -Type TXT {first}"),
        ],
        "made": words.fill("made", date=words.date(sheet.made_at)),
    }


def _zone_part(
    zone: SheetZone, words: Words, sheet: Sheet, numbers: Iterator[int]
) -> dict[str, object]:
    """The records of a zone, or of a domain whose zone is not known (`label` says which)."""
    provider, place, name = zone.provider, zone.place, readable(zone.name)
    facts = []
    if provider:
        facts.append(SheetField(words.fill("provider"), provider.name))
    if place.name_servers:
        facts.append(SheetField(words.fill("servers"), words.listed(place.name_servers)))
    if provider:
        facts.append(SheetField(words.fill("instructions"), provider.source, is_link=True))
    notices = []
    if not place.zone and place.trouble:
        notices.append(words.fill(_TROUBLES[place.trouble]))
    elif place.trouble and not provider:
        notices.append(words.fill("servers_no_answer"))
    names = [zone.name, *(record.sign_domain for record in zone.records)]
    if other := next((name for name in names if readable(name) != name), ""):
        notices.append(words.say("idn", ascii=other, readable=readable(other)))
    return {
        "label": words.fill("zone" if place.zone else "domain"),
        "name": zone.name,
        "readable": name if name != zone.name else "",
        "facts": facts,
        "notices": notices,
        "panel": words.fill("panel_of", provider=provider.name)
        if provider
        else words.fill("panel"),
        "steps": [] if sheet.is_removal else list(_panel_steps(zone, words)),
        "records": [
            _record_part(record, zone, words, sheet, next(numbers)) for record in zone.records
        ],
    }


def _record_part(
    record: SheetRecord, zone: SheetZone, words: Words, sheet: Sheet, number: int
) -> dict[str, object]:
    """A record; of its two `texts`, the first is to be entered. `fields` has the rest."""
    fields = [SheetField(words.fill("type"), "TXT"), SheetField(words.fill("host"), record.host)]
    if record.host != record.fqdn:
        fields.append(SheetField(words.fill("fqdn"), record.fqdn))
    if (name := readable(record.fqdn)) != record.fqdn:
        fields.append(SheetField(words.fill("readable"), name))
    deadline = warning = timing = ""
    is_urgent = False
    if sheet.is_removal:
        texts = [SheetField(words.fill("delete_value"), record.value)]
    else:
        fields.append(SheetField(words.fill("ttl"), words.duration(sheet.ttl)))
        whole, strings = record.value, txt_data(record.value)
        if record.form is ValueForm.WHOLE:
            shown = ("value_enter", whole), ("strings_other", strings)
        else:
            shown = ("strings_enter", strings), ("value_other", whole)
        texts = [SheetField(words.fill(label), text) for label, text in shown]
        if record.due is not None:
            deadline = words.fill("by", due=words.date(record.due))
        elif record.timing is not Timing.DISABLED:
            deadline = words.fill("at_once")
        is_later = record.timing is Timing.LATER
        is_urgent = record.timing is Timing.NOW or (is_later and record.due is None)
        if record.is_too_long:
            limit = zone.provider.limit if zone.provider else None
            warning = words.fill("too_long", length=len(whole), limit=limit)
        if is_later and record.starts_at is not None:
            timing = words.paragraph("later", "late", start=words.time(record.starts_at))
        else:
            timing = words.fill(record.timing)
    return {
        "title": words.fill("record", number=number),
        "fqdn": record.fqdn,
        "deadline": deadline,
        "is_urgent": is_urgent,
        "fields": fields,
        "texts": texts,
        "warning": warning,
        "timing": timing,
    }


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
