"""A sheet for the owner of the DNS: as text, Markdown (CommonMark), HTML or JSON.

The sentences stand in `texts`, the layout in `templates`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from dkimctl.formats.data import json_line
from dkimctl.formats.keys import written_time
from dkimctl.formats.pages import environment
from dkimctl.formats.renderer import txt_data
from dkimctl.formats.table import code, fenced
from dkimctl.handoff.providers import (
    DnsPlace,
    DnsProvider,
    Trait,
    Trouble,
    ValueForm,
    provider_of,
    read_yaml,
)
from dkimctl.models import DnsRecord, Registration, utc_time
from dkimctl.names import readable
from dkimctl.text import MAX_STRING, character_strings, printable

# Before the start: for servers and caches to get the record, and for us to check it.
AHEAD = timedelta(days=2)
_TROUBLES = {Trouble.NO_ANSWER: "zone_no_answer", Trouble.NO_ZONE: "zone_no_zone"}
_WIDTH = 72
_INDENT = "  "
# What a line may not begin with in Japanese (JIS X 4051), and what it may not end with.
_NOT_FIRST = "、。」)・ーっゃゅょぁぃぅぇぉッャュョァィゥェォ"
_NOT_LAST = "「("
# Around a word of data, which is never broken; `printable` leaves neither in data.
_START, _END = "\ue000", "\ue001"
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]"
# What a line may break after: a word, a single character of Japanese, or a word of data.
_PIECE = (
    rf"[{_NOT_LAST}]*(?:{_START}[^{_END}]*{_END}|{_WIDE}|(?:(?!{_WIDE})[^\s{_START}])+)"
    rf"[{_NOT_FIRST}]*\s*"
)


class SheetFormat(StrEnum):
    """What `--format` of `handoff` takes."""

    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


class Language(StrEnum):
    """What `--language` of `handoff` takes."""

    ENGLISH = "en"
    JAPANESE = "ja"


class Timing(StrEnum):
    """When mail is signed with a key."""

    LATER = "later"
    NOW = "now"
    DISABLED = "disabled"  # not until it is enabled
    UNKNOWN = "unknown"


class SheetRecord(NamedTuple):
    """A record to add, or to delete."""

    sign_domain: str
    selector: str | None
    fqdn: str
    host: str  # relative to the zone; the full name if that is not known
    value: str
    form: ValueForm
    is_too_long: bool  # for the provider's panel
    timing: Timing
    starts_at: datetime | None  # with the offset of the start date
    due: datetime | None  # when it should be in DNS; None: at once, or no matter when


class SheetZone(NamedTuple):
    """The records of a zone; those whose zone is not known are together by signing domain."""

    name: str
    place: DnsPlace
    provider: DnsProvider | None
    records: Sequence[SheetRecord]


class Sheet(NamedTuple):
    """The whole sheet."""

    zones: Sequence[SheetZone]
    ttl: int  # in seconds
    contact: str  # whom to answer, or ""
    made_at: datetime
    is_removal: bool = False  # the records are to be deleted, not added

    @property
    def records(self) -> list[SheetRecord]:
        return [record for zone in self.zones for record in zone.records]


def make_sheet(
    registrations: Iterable[tuple[Registration, DnsRecord]],
    places: Mapping[str, DnsPlace],
    now: datetime,
    *,
    panel: DnsProvider | None = None,
    ttl: int = 3600,
    contact: str = "",
    is_removal: bool = False,
) -> Sheet:
    """The sheet for these records, whose places are given by FQDN.

    `panel` is the provider of all zones, whatever their name servers.
    """
    by_zone: dict[str, list[tuple[Registration, DnsRecord]]] = {}
    for registration, record in registrations:
        name = places[record.fqdn].zone or registration.sign_domain
        by_zone.setdefault(name, []).append((registration, record))
    zones = []
    for name, of_zone in by_zone.items():
        place = places[of_zone[0][1].fqdn]
        provider = panel or provider_of(place.name_servers)
        records = [
            _make_record(registration, record, place.zone, provider, now)
            for registration, record in of_zone
        ]
        zones.append(SheetZone(name, place, provider, records))
    return Sheet(zones, ttl, contact, now, is_removal)


def _make_record(
    registration: Registration,
    record: DnsRecord,
    zone: str,
    provider: DnsProvider | None,
    now: datetime,
) -> SheetRecord:
    form, is_too_long = _form(record.value, provider)
    starts_at = registration.starts_at
    if not registration.signs:
        timing = Timing.DISABLED
    elif starts_at is None:
        timing = Timing.UNKNOWN
    else:
        timing = Timing.LATER if starts_at > now else Timing.NOW
    if starts_at is not None and utc_time(registration.start_date) is not None:
        # With the offset in which it was registered.
        offset = datetime.fromisoformat(registration.start_date or "").tzinfo
        starts_at = starts_at.astimezone(offset)
    due = starts_at - AHEAD if timing is Timing.LATER and starts_at else None
    return SheetRecord(
        registration.sign_domain,
        registration.selector,
        record.fqdn,
        record.fqdn[: -len(zone) - 1] if zone else record.fqdn,
        record.value,
        form,
        is_too_long,
        timing,
        starts_at,
        due if due and due > now else None,
    )


def _form(value: str, provider: DnsProvider | None) -> tuple[ValueForm, bool]:
    """How to enter a value, and whether it is too long for the panel."""
    if provider is None:
        return ValueForm.WHOLE, False
    length = len(value)
    if provider.form is ValueForm.STRINGS:
        length += 3 * -(-length // MAX_STRING) - 1  # quotes, and spaces between strings
    if provider.limit is None or length <= provider.limit:
        return provider.form, False
    takes_strings = Trait.TEXT_MODE in provider.traits
    return (ValueForm.STRINGS, False) if takes_strings else (provider.form, True)


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


class SheetField(NamedTuple):
    """A label, and raw text to copy or read; `is_link`: it is an address of ours."""

    label: str
    data: str
    is_link: bool = False


class Words:
    """Says things in a language; `mark` makes markup of names and values, `text` of the rest."""

    def __init__(
        self,
        language: Language,
        mark: Callable[[str], str] = printable,
        text: Callable[[str], str] = str,
    ) -> None:
        self._texts = read_yaml(f"texts/{language}.yaml")
        self._mark = mark
        self._text = text

    def say(self, key: str, **data: str | int) -> str:
        """The text, with names and values as they are marked, and numbers as they are."""
        marked = {
            name: self._mark(value) if isinstance(value, str) else value
            for name, value in data.items()
        }
        return self.fill(key, **marked)

    def fill(self, key: str, **data: object) -> str:
        """The text with data that need no mark, such as a date."""
        return self._text(self._texts[key]).format(**data)

    def paragraph(self, *keys: str, **data: object) -> str:
        """Several texts, one after the other."""
        return self._text(self._texts["space"]).join(self.fill(key, **data) for key in keys)

    def names(self, names: Sequence[str]) -> str:
        """Names one after the other, with their marks."""
        return self._text(self._texts["comma"]).join(map(self._mark, names))

    def listed(self, names: Sequence[str]) -> str:
        """The same as raw text."""
        return str(self._texts["comma"].join(names))

    def time(self, time: datetime) -> str:
        """Such as `1 March 2027, 00:00 (UTC+09:00)`."""
        offset = time.isoformat()[-6:] if time.utcoffset() else ""
        zone = self._texts["zones"].get(offset, f"UTC{offset}")
        return str(self._texts["time"].format(date=self.date(time), time=time, zone=zone))

    def date(self, time: datetime) -> str:
        """Such as `1 March 2027`."""
        month, weekday = self._texts["months"][time.month - 1], self._texts["weekdays"]
        weekday = weekday[time.weekday()]
        return str(self._texts["date"].format(time=time, month=month, weekday=weekday))

    def duration(self, seconds: int) -> str:
        """Seconds, and what they are in a larger unit if that has no rest."""
        for length, unit in (86400, "days"), (3600, "hours"), (60, "minutes"):
            if seconds and seconds % length == 0:
                singular, plural = self._texts[unit]
                count = seconds // length
                larger = singular if count == 1 else plural.format(count)
                return self.fill("seconds_or", count=seconds, larger=larger)
        return self.fill("seconds", count=seconds)


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * min(_width(text), _WIDTH)}"


def columns(fields: Sequence[SheetField]) -> str:
    """Labels and data in two columns."""
    longest = max(_width(field.label) for field in fields)
    return "\n".join(
        f"{_INDENT}{field.label}{' ' * (longest - _width(field.label))}  {printable(field.data)}"
        for field in fields
    )


def item(text: str) -> str:
    return "- " + f"\n{_INDENT}".join(_lines(text, _WIDTH - len("- ")))


def wrapped(text: str) -> str:
    return "\n".join(_lines(text, _WIDTH))


def unbroken(data: str) -> str:
    return " ".join(f"{_START}{word}{_END}" for word in printable(data).split())


def _lines(text: str, width: int) -> list[str]:
    lines = [""]
    used = 0
    for marked in re.findall(_PIECE, text):
        piece = marked.replace(_START, "").replace(_END, "")
        if lines[-1] and used + _width(piece.rstrip()) > width:
            lines.append("")
            used = 0
        lines[-1] += piece
        used += _width(piece)
    return [line.rstrip() for line in lines]


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
